# docker build -t mockllm .
# docker run --rm -p 127.0.0.1:8080:8080 -v "$PWD/scenarios:/scenarios:ro" mockllm
FROM python:3.13-slim AS build

WORKDIR /src
COPY LICENSE README.md pyproject.toml hatch_build.py constraints.txt ./
COPY docs docs
COPY examples/runners examples/runners
COPY mockllm mockllm
COPY pytest_plugin pytest_plugin
COPY scenarios scenarios

# A wheel, so that the image holds what users install; exact versions, so that it stays the same.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && python -m venv /opt/mockllm \
    && /opt/mockllm/bin/pip install --no-cache-dir --constraint constraints.txt \
        "$(ls /wheels/*.whl)[compression,redis,speed]"

FROM python:3.13-slim

COPY --from=build /opt/mockllm /opt/mockllm
# What is played until a folder is mounted here.
COPY scenarios /scenarios

ENV PATH=/opt/mockllm/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# By number: Kubernetes checks `runAsNonRoot` without reading /etc/passwd.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080

# http.client ignores the proxies of the environment, urllib and curl do not.
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8080, timeout=4); c.request('GET', '/_mockllm/health'); raise SystemExit(c.getresponse().status != 200)"]

ENTRYPOINT ["mockllm"]
CMD ["serve", "/scenarios", "--host", "0.0.0.0", "--port", "8080"]
