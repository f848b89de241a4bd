"""Client of Meridio's IPAM service over grpcio, for the tests of the daemon.

Reads operations from standard input and writes answers to standard output, a JSON object each line, as
operation.md describes. Operations run at the same time; an answer carries the id of its operation. After the
end of its input it waits for the running ones. The only argument is the folder with the protocol's files.
"""

import json
import sys
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

FIELDS = {
    "id",
    "op",
    "target",
    "tls",
    "keepalive",
    "connection",
    "deadline_ms",
    "trench",
    "conduit",
    "node",
    "child",
    "family",
    "no_subnet",
    "service",
    "hold_ms",
    "call",
}


class Client:
    """Connections, and the calls that can be cancelled."""

    def __init__(self, protocol):
        # The modules are generated from the files at this moment.
        sys.path.insert(0, protocol)
        self.ipam, self.ipam_grpc = grpc.protos_and_services("ipam/v1/ipam.proto")
        self.nsp = grpc.protos("nsp/v1/conduit.proto")
        self.channels = {}
        self.calls = {}
        self.lock = threading.Lock()

    def start(self, operation):
        """Begins an operation, in the order of the lines. Its end is waited for elsewhere."""
        unknown = set(operation) - FIELDS
        if unknown:
            sys.exit(f"client.py: no operation has {sorted(unknown)}")
        begin = getattr(self, "begin_" + operation["op"].replace("-", "_"))
        end = begin(operation)
        threading.Thread(target=self.finish, args=(end, operation)).start()

    def finish(self, end, operation):
        try:
            answer = end()
        except grpc.RpcError as error:
            answer = {"code": error.code().name, "text": error.details()}
        except grpc.FutureCancelledError:
            answer = {"code": "CANCELLED", "text": "the caller cancelled the call"}
        with self.lock:
            self.calls.pop(operation["id"], None)
        self.answer(operation, answer)

    def answer(self, operation, answer):
        with self.lock:
            print(json.dumps({"id": operation["id"], **answer}), flush=True)

    def channel(self, operation):
        """The connection of operations with the same target, TLS, keepalive and name."""
        key = json.dumps([operation.get(name) for name in ("target", "tls", "keepalive", "connection")])
        if key not in self.channels:
            self.channels[key] = connect(operation["target"], operation.get("tls"), operation.get("keepalive"))
        return self.channels[key]

    def call(self, method, request, operation):
        """Starts a call that can be cancelled."""
        return self.cancellable(operation, method.future(request, timeout=timeout(operation)))

    def cancellable(self, operation, call):
        with self.lock:
            self.calls[operation["id"]] = call
        return call

    def child(self, operation):
        """The message. A name that is absent leaves its message out."""
        child = self.ipam.Child(name=operation.get("child", ""))
        if operation.get("no_subnet"):
            return child
        child.subnet.node = operation.get("node", "")
        child.subnet.ipFamily = operation.get("family", 0)
        if operation.get("conduit") is not None:
            child.subnet.conduit.name = operation["conduit"]
            child.subnet.conduit.SetInParent()
            if operation.get("trench") is not None:
                child.subnet.conduit.trench.name = operation["trench"]
                child.subnet.conduit.trench.SetInParent()
        return child

    def begin_allocate(self, operation):
        stub = self.ipam_grpc.IpamStub(self.channel(operation))
        call = self.call(stub.Allocate, self.child(operation), operation)

        def end():
            prefix = call.result()
            return {"address": prefix.address, "prefix_length": prefix.prefixLength}

        return end

    def begin_release(self, operation):
        stub = self.ipam_grpc.IpamStub(self.channel(operation))
        call = self.call(stub.Release, self.child(operation), operation)

        def end():
            call.result()
            return {}

        return end

    def begin_health(self, operation):
        request = health_pb2.HealthCheckRequest(service=operation.get("service", ""))
        check = health_pb2_grpc.HealthStub(self.channel(operation)).Check
        call = self.call(check, request, operation)
        return lambda: {"status": status(call.result())}

    def begin_watch_health(self, operation):
        request = health_pb2.HealthCheckRequest(service=operation.get("service", ""))
        watch = health_pb2_grpc.HealthStub(self.channel(operation)).Watch
        stream = self.cancellable(operation, watch(request, timeout=timeout(operation)))

        def end():
            for response in stream:
                self.answer(operation, {"more": True, "status": status(response)})
            return {}

        return end

    def begin_hold(self, operation):
        """Keeps a connection for some time after it is ready, and reports each change of its state."""
        ready, states = threading.Event(), []

        def change(state):
            if ready.is_set():
                states.append(state.name)
            elif state == grpc.ChannelConnectivity.READY:
                ready.set()

        channel = self.channel(operation)
        channel.subscribe(change, try_to_connect=True)

        def end():
            if not ready.wait(timeout(operation)):
                return {"code": "UNKNOWN", "text": f"the connection to {operation['target']} is not ready"}
            time.sleep(operation["hold_ms"] / 1000)
            channel.unsubscribe(change)
            return {"dropped": states} if states else {}

        return end

    def begin_cancel(self, operation):
        with self.lock:
            call = self.calls.get(operation["call"])
        if call is not None:
            call.cancel()
        return dict


def timeout(operation):
    milliseconds = operation.get("deadline_ms", 0)
    return milliseconds / 1000 if milliseconds else None


def status(response):
    return health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)


def connect(target, tls, keepalive):
    # Without it, channels with equal arguments share one connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if keepalive:
        options += [
            ("grpc.keepalive_time_ms", keepalive["time_ms"]),
            ("grpc.keepalive_timeout_ms", keepalive.get("timeout_ms", 20_000)),
            ("grpc.keepalive_permit_without_calls", int(keepalive.get("without_stream", False))),
            ("grpc.http2.max_pings_without_data", 0),
        ]
    if target.startswith("unix:"):
        # grpcio would send the path of the socket as the authority, which no URI may have.
        options.append(("grpc.default_authority", "localhost"))
    if not tls:
        return grpc.insecure_channel(target, options)
    if tls.get("spiffe"):
        sys.exit("client.py: grpcio verifies host names only")
    if tls.get("server_name"):
        options.append(("grpc.ssl_target_name_override", tls["server_name"]))
    files = [read(tls.get(name)) for name in ("ca", "key", "certificate")]
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(*files), options)


def read(path):
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()


def main(protocol):
    client = Client(protocol)
    for line in sys.stdin:
        client.start(json.loads(line))


main(*sys.argv[1:])
