//! Service `ipam.v1.Ipam`: one method per call, each with its deadline and its caller.

use ipam_api::limits::{GRPC_CONDUIT_WAITS_MAX, GRPC_CONDUIT_WAITS_PER_CALLER_MAX};
use tonic::{Request, Response, Status, async_trait};

use crate::allocate::allocate;
use crate::child::KnownChild;
use crate::deadline::deadline;
use crate::places::Places;
use crate::prefixes::{Client, Prefixes};
use crate::servers::{Caller, Servers};
use crate::status::{compatible, status};
use crate::wire::ipam::v1::ipam_server::Ipam;
use crate::wire::ipam::v1::{Child, Prefix};

/// Service over the prefixes of one trench.
#[derive(Debug)]
pub(crate) struct Service<S> {
    prefixes: Prefixes<S>,
    waits: Places,
}

impl<S: Servers> Service<S> {
    pub(crate) fn new(prefixes: Prefixes<S>) -> Self {
        let waits = Places::new(GRPC_CONDUIT_WAITS_MAX, GRPC_CONDUIT_WAITS_PER_CALLER_MAX);
        Self { prefixes, waits }
    }

    async fn allocated(&self, request: Request<Child>) -> Result<Prefix, Status> {
        let client = client(&request)?;
        let child = KnownChild::read(request.get_ref(), &self.prefixes.settings)?;
        let done = allocate(&self.prefixes, &self.waits, &client, &child).await?;
        Ok(Prefix { address: done.address.to_string(), prefix_length: done.node_length.into() })
    }

    async fn released(&self, request: Request<Child>) -> Result<(), Status> {
        let client = client(&request)?;
        // A child that no allocation could have met has nothing to release.
        let Ok(child) = KnownChild::read(request.get_ref(), &self.prefixes.settings) else { return Ok(()) };
        self.prefixes.release(&client, &child).await.map_err(|problem| status(&problem))
    }

    fn answer<T>(&self, result: Result<T, Status>) -> Result<Response<T>, Status> {
        let refused = |status| if self.prefixes.settings.compat { compatible(status) } else { status };
        result.map(Response::new).map_err(refused)
    }
}

#[async_trait]
impl<S: Servers> Ipam for Service<S> {
    async fn allocate(&self, request: Request<Child>) -> Result<Response<Prefix>, Status> {
        let result = self.allocated(request).await;
        self.answer(result)
    }

    async fn release(&self, request: Request<Child>) -> Result<Response<()>, Status> {
        let result = self.released(request).await;
        self.answer(result)
    }
}

fn client<T>(request: &Request<T>) -> Result<Client, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller.ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
    Ok(Client { caller, deadline: deadline(request.metadata()) })
}
