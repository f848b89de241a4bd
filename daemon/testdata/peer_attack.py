"""A program from outside that claims to be a member and proposes a command with a grant of its own.

    peer_attack.py PLACE COMMAND_HEX        PLACE: tcp:HOST:PORT, tls:HOST:PORT or unix:/PATH

It writes one word for each step that it reaches: connected, hello, welcome, proposed. Exit code 0: the last one.
COMMAND_HEX is the command as the log has it; all else is written here byte by byte, as postcard lays it out.
"""

import socket
import ssl
import sys


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value):
    return varint(len(value)) + value


def frame(body):
    # Four bytes of length, one of the version of frames.
    return (len(body) + 1).to_bytes(4, "big") + b"\x01" + body


class Reader:
    def __init__(self, body):
        self.body, self.at = body, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.body[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        length = self.number()
        self.at += length
        return self.body[self.at - length : self.at]


def read_exactly(stream, length):
    got = b""
    while len(got) < length:
        piece = stream.recv(length - len(got))
        if not piece:
            raise EOFError("it hung up")
        got += piece
    return got


def read_frame(stream):
    length = int.from_bytes(read_exactly(stream, 4), "big")
    return read_exactly(stream, length)[1:]


def connect(place):
    kind, where = place.split(":", 1)
    if kind == "unix":
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(30)
        stream.connect(where)
        return stream
    host, port = where.rsplit(":", 1)
    stream = socket.create_connection((host, int(port)), timeout=30)
    if kind == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        stream = context.wrap_socket(stream)
    return stream


def open_with(place, opening):
    stream = connect(place)
    print("connected", flush=True)
    stream.sendall(frame(b"ipamd-pr" + varint(1) + text(opening)))
    return stream, Reader(read_frame(stream))


def main(place, command):
    # Request for the identity of the member.
    _, reply = open_with(place, varint(0))
    if reply.number() != 0:
        raise PermissionError("refused")
    name, disk = reply.text(), reply.text()
    reply.text(), reply.text()
    if reply.number() != 2:
        raise RuntimeError("it belongs to no cluster yet")
    cluster, member = reply.text(), reply.number()
    print("hello", flush=True)
    # A member of an id that was never given, with a disk of its own; for control (1).
    stranger = text(b"innocent") + varint(4711) + text(b"no such disk")
    target = text(name) + varint(member) + text(disk)
    ticket = text(cluster) + stranger + target + text(b"http://127.0.0.1:1") + varint(1)
    stream, reply = open_with(place, varint(1) + ticket)
    if reply.number() != 1:
        raise PermissionError("refused")
    print("welcome", flush=True)
    # Request 1: propose (5), with a budget of ten seconds.
    stream.sendall(frame(varint(1) + varint(5) + command + varint(10_000)))
    while True:
        answer = Reader(read_frame(stream))
        if answer.number() == 1:
            break
    print("proposed", answer.body.hex(), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], bytes.fromhex(sys.argv[2]))
    except (OSError, EOFError, RuntimeError) as error:
        print(f"stopped: {error}", flush=True)
        sys.exit(3)
