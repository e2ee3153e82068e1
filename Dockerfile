# The nearset program: `make images`, or `docker build -t nearset .`
#
#   docker run --rm -v "$PWD:/data" -w /data -u "$(id -u):$(id -g)" nearset dedup my.jsonl -o clean/
FROM rust:1-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --package nearset-cli

FROM debian:bookworm-slim
# Whom to trust where files are read from https:// and stores.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /build/target/release/nearset /usr/local/bin/nearset
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/nearset/
RUN nearset man /usr/local/share/man/man1
ENTRYPOINT ["nearset"]
CMD ["--help"]
