package com.example.gateway;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Asks rld about requests. It needs the JDK alone, and is safe for concurrent use. */
public class RldClient {
    private final URI url;
    private final Duration timeout;
    private final HttpClient http;

    public RldClient(URI url, Duration timeout) {
        this.url = url;
        this.timeout = timeout;
        this.http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout).build();
    }

    /**
     * Asks about a request. The answer of rld has the status 200 for one that is admitted. The future
     * fails if rld does not answer in time, or cannot decide.
     *
     * @param target path and query, as the client sent them
     * @param apiKeys all values of the header X-Api-Key: rld denies several
     */
    public CompletableFuture<HttpResponse<byte[]>> ask(
            String method, String target, String host, String address, List<String> apiKeys) {
        HttpRequest.Builder question = HttpRequest.newBuilder(url)
                .timeout(timeout)
                .header("X-Forwarded-Method", method)
                .header("X-Forwarded-Uri", target)
                .header("X-Forwarded-For", address);
        if (host != null) {
            question.header("X-Forwarded-Host", host);
        }
        try {
            for (String key : apiKeys) {
                question.header("X-Api-Key", key);
            }
        } catch (IllegalArgumentException e) {
            return CompletableFuture.failedFuture(e); // no text of a header
        }
        return http.sendAsync(question.build(), HttpResponse.BodyHandlers.ofByteArray()).thenCompose(answer -> {
            if (answer.statusCode() >= 500) {
                return CompletableFuture.failedFuture(new IOException("rld answers " + answer.statusCode()));
            }
            return CompletableFuture.completedFuture(answer);
        });
    }
}
