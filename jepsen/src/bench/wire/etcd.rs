//! Messages of `etcdserverpb` and `mvccpb` (etcd's `rpc.proto`, `kv.proto`) with the fields that are used
//! here. Other fields are skipped.

/// Result of a comparison that is true for equal values (`Compare.EQUAL`).
const EQUAL: i32 = 0;
/// Target of a comparison: the revision of the creation (`Compare.CREATE`).
const CREATE: i32 = 1;
/// Target of a comparison: the revision of the last change (`Compare.MOD`).
const MOD: i32 = 2;

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::bench) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(in crate::bench) value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct PutResponse {}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::bench) key: Vec<u8>,
    #[prost(bool, tag = "7")]
    pub(in crate::bench) serializable: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(in crate::bench) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::bench) key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(in crate::bench) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(in crate::bench) value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct Compare {
    #[prost(int32, tag = "1")]
    result: i32,
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "CompareTarget", tags = "5, 6")]
    value: Option<CompareTarget>,
}

/// Value of a comparison.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(in crate::bench) enum CompareTarget {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

impl Compare {
    /// Comparison for equality with a revision of a key.
    pub(in crate::bench) fn equal(key: &[u8], value: CompareTarget) -> Self {
        let target = match value {
            CompareTarget::CreateRevision(_) => CREATE,
            CompareTarget::ModRevision(_) => MOD,
        };
        Self { result: EQUAL, target, key: key.to_vec(), value: Some(value) }
    }
}

/// Operation of a transaction (`RequestOp`).
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct Operation {
    #[prost(oneof = "Request", tags = "1, 2")]
    pub(in crate::bench) request: Option<Request>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(in crate::bench) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::bench) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::bench) success: Vec<Operation>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::bench) failure: Vec<Operation>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::bench) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::bench) header: Option<response::Header>,
    #[prost(bool, tag = "2")]
    pub(in crate::bench) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::bench) responses: Vec<response::Operation>,
}

/// Parts of the response to a transaction.
pub(in crate::bench) mod response {
    use super::RangeResponse;

    #[derive(Clone, PartialEq, prost::Message)]
    pub(in crate::bench) struct Header {
        #[prost(int64, tag = "3")]
        pub(in crate::bench) revision: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(in crate::bench) struct Operation {
        #[prost(message, optional, tag = "1")]
        pub(in crate::bench) range: Option<RangeResponse>,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn messages_have_the_bytes_of_the_protocol() {
        let put = PutRequest { key: b"k".to_vec(), value: b"v".to_vec() };
        assert_eq!(put.encode_to_vec(), b"\x0a\x01k\x12\x01v");
        let range = RangeRequest { key: b"k".to_vec(), serializable: true };
        assert_eq!(range.encode_to_vec(), b"\x0a\x01k\x38\x01");
        let absent = Compare::equal(b"k", CompareTarget::CreateRevision(0));
        // A revision of 0 is encoded, because the field belongs to a oneof.
        assert_eq!(absent.encode_to_vec(), b"\x10\x01\x1a\x01k\x28\x00");
        let unchanged = Compare::equal(b"k", CompareTarget::ModRevision(7));
        assert_eq!(unchanged.encode_to_vec(), b"\x10\x02\x1a\x01k\x30\x07");
        let put = Operation { request: Some(Request::Put(put)) };
        let txn = TxnRequest { compare: vec![absent], success: vec![put], failure: Vec::new() };
        assert_eq!(
            txn.encode_to_vec(),
            b"\x0a\x07\x10\x01\x1a\x01k\x28\x00\x12\x08\x12\x06\x0a\x01k\x12\x01v"
        );
    }

    #[test]
    fn unknown_fields_of_a_response_are_skipped() {
        let bytes = b"\x0a\x04\x08\x01\x18\x2a\x10\x01";
        let response = TxnResponse::decode(&bytes[..]).unwrap();
        assert_eq!((response.header.unwrap().revision, response.succeeded), (42, true));
    }
}
