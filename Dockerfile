# The image of rld: one static binary, and nothing else.
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

FROM scratch
COPY --from=build /out/rld /usr/local/bin/rld
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/rld"]
CMD ["serve"]
