//! Clients of HTTP/1.1 and gRPC that cost little CPU time, since they share the cores with the systems.

mod etcd;
mod grpc;
mod http;
mod response;

pub(super) use self::etcd::{
    Compare, CompareTarget, KeyValue, Operation, PutRequest, PutResponse, RangeRequest, RangeResponse,
    Request, TxnRequest, TxnResponse,
};
pub(super) use self::grpc::Channel;
pub(super) use self::http::{Connection, request};
pub(super) use self::response::Response;
