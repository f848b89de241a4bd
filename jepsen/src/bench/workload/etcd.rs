//! Puts, creations and reads of single keys in etcd.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

use super::names::next_number;
use crate::bench::load::{Answer, Call, Client};
use crate::bench::wire::{
    Channel, Compare, CompareTarget, Operation, PutRequest, PutResponse, RangeRequest, RangeResponse,
    Request, TxnRequest, TxnResponse,
};

/// Size of a value in bytes, similar to that of an allocation.
const VALUE_BYTES: usize = 256;
/// Number of clients that share one connection, as with the etcd client library.
const CLIENTS_PER_CONNECTION: usize = 8;
/// Keys that are read in turn.
const KEYS: usize = 500;

/// Opens connections to a server for a number of clients, and returns one for each client.
pub(in crate::bench) async fn channels(server: SocketAddr, clients: usize) -> Result<Vec<Channel>> {
    let mut channels = Vec::new();
    while channels.len() < clients {
        let channel = Channel::open(server).await?;
        let left = clients - channels.len();
        channels.extend(std::iter::repeat_n(channel, left.min(CLIENTS_PER_CONNECTION)));
    }
    Ok(channels)
}

/// Client that puts another key each time.
#[derive(Debug)]
pub(in crate::bench) struct Put {
    channel: Channel,
    must_be_absent: bool,
}

impl Put {
    /// Client that puts.
    pub(in crate::bench) fn new(channel: Channel) -> Self {
        Self { channel, must_be_absent: false }
    }

    /// Client that puts each key in a transaction, if it is absent.
    pub(in crate::bench) fn creating(channel: Channel) -> Self {
        Self { channel, must_be_absent: true }
    }

    async fn put(&self) -> Result<Answer> {
        let key = format!("/bench/{:016x}", next_number()).into_bytes();
        let put = PutRequest { key: key.clone(), value: vec![b'x'; VALUE_BYTES] };
        if self.must_be_absent {
            let request = TxnRequest {
                compare: vec![Compare::equal(&key, CompareTarget::CreateRevision(0))],
                success: vec![Operation { request: Some(Request::Put(put)) }],
                failure: Vec::new(),
            };
            let response: TxnResponse = self.channel.call("/etcdserverpb.KV/Txn", &request).await?;
            ensure!(response.succeeded, "the key exists");
        } else {
            let _done: PutResponse = self.channel.call("/etcdserverpb.KV/Put", &put).await?;
        }
        Ok(Answer::Done(1))
    }
}

impl Client for Put {
    fn call(&mut self) -> Call<'_> {
        Box::pin(self.put())
    }
}

/// Client that reads one key after the other.
#[derive(Debug)]
pub(in crate::bench) struct Get {
    channel: Channel,
    is_stale: bool,
    next: usize,
}

impl Get {
    /// Puts the keys, and returns clients that read them.
    pub(in crate::bench) async fn clients(
        server: SocketAddr,
        count: usize,
        is_stale: bool,
    ) -> Result<Vec<Box<dyn Client>>> {
        let channels = channels(server, count).await?;
        let first = channels.first().context("no client")?;
        for number in 0..KEYS {
            let put = PutRequest { key: key(number), value: vec![b'x'; VALUE_BYTES] };
            let _done: PutResponse = first.call("/etcdserverpb.KV/Put", &put).await?;
        }
        let client = |(number, channel)| Box::new(Self { channel, is_stale, next: number * 7 }) as _;
        Ok(channels.into_iter().enumerate().map(client).collect())
    }

    async fn get(&mut self) -> Result<Answer> {
        self.next = (self.next + 1) % KEYS;
        let request = RangeRequest { key: key(self.next), serializable: self.is_stale };
        let response: RangeResponse = self.channel.call("/etcdserverpb.KV/Range", &request).await?;
        ensure!(response.kvs.len() == 1, "the key is absent");
        Ok(Answer::Done(1))
    }
}

impl Client for Get {
    fn call(&mut self) -> Call<'_> {
        Box::pin(self.get())
    }
}

fn key(number: usize) -> Vec<u8> {
    format!("/bench/read/{number:04}").into_bytes()
}
