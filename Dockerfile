# The gateway, for one host: `docker build --tag deermem .` and docs/how-to/run-in-a-container.md.

ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/cli.txt requirements/server.txt requirements/
# The first environment has the builder; the second goes into the image.
RUN python -m venv /tools \
    && /tools/bin/pip install --quiet --require-hashes --requirement requirements/cli.txt \
    && python -m venv /opt/deermem \
    && /opt/deermem/bin/pip install --quiet --require-hashes --requirement requirements/server.txt
COPY LICENSE README.md pyproject.toml ./
COPY src src
RUN /tools/bin/python -m hatchling build --target wheel \
    && /opt/deermem/bin/pip install --quiet --no-index --no-deps dist/*.whl \
    && /opt/deermem/bin/pip uninstall --quiet --yes pip \
    && /opt/deermem/bin/python -m compileall -q /opt/deermem/lib

FROM python:${PYTHON}
# Nothing is written but the volume: no byte code, no home directory.
ENV PATH=/opt/deermem/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DEERMEM_DATA_DIR=/data \
    DEERMEM_GATEWAY_HOST=0.0.0.0 \
    DEERMEM_GATEWAY_PORT=8431 \
    DEERMEM_GATEWAY_SHUTDOWN_SECONDS=8
# A new named volume takes the owner of the directory that it covers.
RUN groupadd --gid 10001 deermem \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin deermem \
    && install --directory --owner 10001 --group 10001 --mode 0700 /data
COPY --from=build /opt/deermem /opt/deermem
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8431
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-m", "deermem.gateway.health"]
# There is no shell between: signals reach the gateway, which is process 1.
ENTRYPOINT ["deermem"]
CMD ["serve"]
