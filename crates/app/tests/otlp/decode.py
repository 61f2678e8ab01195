"""Reads a request of OTLP with the official package and prints its JSON form: `decode.py trace|metrics FILE`."""

import base64
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

kind, path = sys.argv[1:]
message = ExportTraceServiceRequest() if kind == "trace" else ExportMetricsServiceRequest()
message.ParseFromString(open(path, "rb").read())
body = MessageToDict(message, use_integers_for_enums=True)
# OTLP writes ids as hexadecimal digits, where the JSON of protobuf has base64.
for resource in body.get("resourceSpans", []):
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ["traceId", "spanId", "parentSpanId"]:
                if key in span:
                    span[key] = base64.b64decode(span[key]).hex()
print(json.dumps(body))
