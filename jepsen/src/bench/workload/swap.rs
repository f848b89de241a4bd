//! Compare-and-swap on one object in etcd: the design of Whereabouts and of pools as custom resources.

use anyhow::{Context as _, Result};

use super::names::next_number;
use crate::bench::load::{Answer, Call, Client};
use crate::bench::wire::{
    Channel, Compare, CompareTarget, KeyValue, Operation, PutRequest, PutResponse, RangeRequest, Request,
    TxnRequest, TxnResponse,
};

/// Key of the pool.
const KEY: &[u8] = b"/bench/pool";
/// Bytes of the pool: 256 allocations of 16 bytes each.
const POOL_BYTES: usize = 4096;
/// Bytes of one allocation in the pool.
const ENTRY_BYTES: usize = 16;

/// Client that changes one allocation of the pool with each call. If another client has changed the pool in
/// between, the call is repeated.
#[derive(Debug)]
pub(in crate::bench) struct Swap {
    channel: Channel,
    /// Revision and bytes of the pool at the last read.
    known: (i64, Vec<u8>),
}

impl Swap {
    /// Makes the pool, so that all clients change an existing object.
    pub(in crate::bench) async fn prepare(channel: &Channel) -> Result<()> {
        let put = PutRequest { key: KEY.to_vec(), value: vec![b'x'; POOL_BYTES] };
        let _done: PutResponse = channel.call("/etcdserverpb.KV/Put", &put).await?;
        Ok(())
    }

    /// Client that has not read the pool yet.
    pub(in crate::bench) fn new(channel: Channel) -> Self {
        Self { channel, known: (0, Vec::new()) }
    }

    async fn change(&mut self) -> Result<Answer> {
        loop {
            let (revision, mut pool) = self.known.clone();
            let number = next_number();
            let entries = (POOL_BYTES / ENTRY_BYTES) as u64;
            let at = usize::try_from(number % entries)? * ENTRY_BYTES;
            for (byte, new) in pool.iter_mut().skip(at).zip(format!("{number:016x}").bytes()) {
                *byte = new;
            }
            let put = PutRequest { key: KEY.to_vec(), value: pool.clone() };
            let get = RangeRequest { key: KEY.to_vec(), serializable: false };
            let request = TxnRequest {
                compare: vec![Compare::equal(KEY, CompareTarget::ModRevision(revision))],
                success: vec![Operation { request: Some(Request::Put(put)) }],
                failure: vec![Operation { request: Some(Request::Range(get)) }],
            };
            let response: TxnResponse = self.channel.call("/etcdserverpb.KV/Txn", &request).await?;
            if response.succeeded {
                let header = response.header.context("a response without a header")?;
                self.known = (header.revision, pool);
                return Ok(Answer::Done(1));
            }
            let KeyValue { mod_revision, value, .. } = response
                .responses
                .into_iter()
                .find_map(|operation| operation.range?.kvs.pop())
                .context("a failed comparison without the object")?;
            self.known = (mod_revision, value);
        }
    }
}

impl Client for Swap {
    fn call(&mut self) -> Call<'_> {
        Box::pin(self.change())
    }
}
