package com.example.gateway;

import java.net.URI;
import java.time.Duration;
import java.util.List;

/** Asks rld 13 times with the keys of the arguments, and prints the statuses. */
public class Ask {
    public static void main(String[] args) throws Exception {
        RldClient rld = new RldClient(URI.create(args[0]), Duration.ofSeconds(30));
        List<String> keys = List.of(args).subList(2, args.length);
        for (int i = 0; i < 13; i++) {
            String status;
            try {
                status = String.valueOf(rld.ask("GET", args[1], "web.test", "192.0.2.1", keys).get().statusCode());
            } catch (java.util.concurrent.ExecutionException e) {
                status = "failed";
            }
            System.out.println(status);
        }
    }
}
