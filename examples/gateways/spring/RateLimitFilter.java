package com.example.gateway;

import java.net.URI;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.core.Ordered;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Asks rld before a request is passed on. Without its answer the request gets the status 503. */
@Component
public class RateLimitFilter implements GlobalFilter, Ordered {
    private static final List<String> COPIED =
            List.of("Content-Type", "RateLimit", "RateLimit-Policy", "Retry-After");

    private final RldClient rld;

    public RateLimitFilter(@Value("${rld.url}") URI url, @Value("${rld.timeout}") Duration timeout) {
        this.rld = new RldClient(url, timeout);
    }

    /** Before all filters that change the request. */
    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, GatewayFilterChain chain) {
        ServerHttpRequest request = exchange.getRequest();
        URI uri = request.getURI();
        String target = uri.getRawPath() + (uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery());
        String address = request.getRemoteAddress().getAddress().getHostAddress();
        List<String> keys = request.getHeaders().getOrEmpty("X-Api-Key");
        return Mono.fromFuture(() -> rld.ask(request.getMethod().name(), target, uri.getHost(), address, keys))
                .map(RateLimitFilter::decided)
                .onErrorReturn(Decision.UNAVAILABLE)
                .flatMap(decision -> decision.apply(exchange, chain));
    }

    private static Decision decided(HttpResponse<byte[]> answer) {
        return new Decision(answer.statusCode(), answer);
    }

    private record Decision(int status, HttpResponse<byte[]> answer) {
        static final Decision UNAVAILABLE = new Decision(503, null);

        Mono<Void> apply(ServerWebExchange exchange, GatewayFilterChain chain) {
            ServerHttpResponse response = exchange.getResponse();
            if (status == 200) {
                answer.headers().firstValue("RateLimit").ifPresent(v -> response.getHeaders().set("RateLimit", v));
                return chain.filter(exchange);
            }
            response.setStatusCode(HttpStatusCode.valueOf(status));
            if (answer == null) {
                return response.setComplete();
            }
            for (String name : COPIED) {
                answer.headers().firstValue(name).ifPresent(v -> response.getHeaders().set(name, v));
            }
            return response.writeWith(Mono.just(response.bufferFactory().wrap(answer.body())));
        }
    }
}
