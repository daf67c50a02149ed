# The gateway as one static binary, without a shell, as a user without rights.
# `init` is the same binary beside a shell: it makes the master key and migrates, then ends (docker-compose.yml).

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/graft ./cmd/graft
RUN mkdir /out/keys

FROM busybox:1.37 AS init
COPY --from=build /out/graft /usr/bin/graft
COPY --from=build --chown=10001:10001 /out/keys /keys
COPY deploy/init /usr/bin/graft-init
USER 10001:10001
ENV GRAFT_MASTER_KEY_FILE=/keys/master
ENTRYPOINT ["/bin/sh", "/usr/bin/graft-init"]

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/graft /graft
USER 10001:10001
ENV GRAFT_LISTEN=0.0.0.0:8080 GRAFT_LOG=json
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/graft", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/graft"]
CMD ["serve"]
