# The image of rld: one static binary, a link to it, and nothing else.
#
#   docker build -t registry.example/rld:TAG .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags='-s -w' -o /out/rld ./cmd/rld
# Under the name of envoyproxy/ratelimit it takes the place of that: see
# docs/migrate.md.
RUN mkdir -p /out/links/bin && ln -s /usr/local/bin/rld /out/links/bin/ratelimit

FROM scratch
COPY --from=build /out/rld /usr/local/bin/rld
COPY --from=build /out/links/ /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/rld"]
CMD ["serve"]
