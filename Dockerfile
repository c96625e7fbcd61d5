# syntax=docker/dockerfile:1
# Three static programs and nothing else: no shell, no package manager, no root.
FROM node:20-bookworm-slim AS assets
WORKDIR /src/web/assets
COPY web/assets/package.json web/assets/package-lock.json ./
RUN npm ci --no-fund --no-audit
COPY web/assets ./
RUN npm run build

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
COPY --from=assets /src/web/assets/dist ./web/assets/dist
# The stamp is assembled by the Makefile, so that both ways to build agree.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make clusterhost labserver-only kind-agent && mkdir -p /out/data && cp bin/labserver bin/clusterhost bin/kind-agent /out/

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build --chown=nonroot:nonroot /out/data /data
COPY --from=build /out/labserver /out/clusterhost /out/kind-agent /usr/local/bin/
USER nonroot
VOLUME /data
EXPOSE 8080
ENV KUBISTRO_ADDR=0.0.0.0:8080 KUBISTRO_DATA=/data
ENTRYPOINT ["/usr/local/bin/labserver"]
CMD ["serve"]
