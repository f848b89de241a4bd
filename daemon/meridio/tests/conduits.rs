//! Lists of conduits from an NSP service.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::Stream;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use ipam_api::Code as ProblemCode;
use ipam_meridio::wire::nsp::v1::configuration_manager_server::{
    ConfigurationManager, ConfigurationManagerServer,
};
use ipam_meridio::wire::nsp::v1::{Conduit, ConduitResponse, Trench};
use ipam_meridio::{Followed, NspSettings, follow_conduits};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::fixture::{LIMIT, Recorder, answer, caller, problem, settings};

type Lists = mpsc::UnboundedReceiver<Result<ConduitResponse, Status>>;

/// NSP service whose lists come from a test.
struct Nsp {
    lists: Arc<Mutex<Vec<Lists>>>,
    asked: watch::Sender<Vec<Conduit>>,
}

#[tonic::async_trait]
impl ConfigurationManager for Nsp {
    type WatchConduitStream = Pin<Box<dyn Stream<Item = Result<ConduitResponse, Status>> + Send>>;

    async fn watch_conduit(
        &self,
        request: Request<Conduit>,
    ) -> Result<Response<Self::WatchConduitStream>, Status> {
        self.asked.send_modify(|asked| asked.push(request.into_inner()));
        let next = self.lists.lock().unwrap().pop();
        let mut lists = next.ok_or_else(|| Status::unavailable("no more lists"))?;
        Ok(Response::new(Box::pin(futures::stream::poll_fn(move |context| lists.poll_recv(context)))))
    }
}

/// List of conduits with their trenches; an empty one is left out.
fn list(names: &[(&str, &str)]) -> Result<ConduitResponse, Status> {
    let conduit = |(name, trench): &(&str, &str)| Conduit {
        name: (*name).to_owned(),
        trench: (!trench.is_empty()).then(|| Trench { name: (*trench).to_owned() }),
    };
    Ok(ConduitResponse { conduits: names.iter().map(conduit).collect() })
}

struct Scene {
    servers: Recorder,
    asked: watch::Receiver<Vec<Conduit>>,
    news: watch::Receiver<Followed>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Scene {
    /// Watches of the lists, each used by one connection, in this order.
    async fn begin(servers: Recorder, mut lists: Vec<Lists>) -> Self {
        lists.reverse();
        let (asked, was_asked) = watch::channel(Vec::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let nsp =
            ConfigurationManagerServer::from_arc(Arc::new(Nsp { lists: Arc::new(Mutex::new(lists)), asked }));
        let router = Routes::new(nsp).prepare().into_axum_router();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(async move { drop(http.serve_connection(TokioIo::new(stream), service).await) });
            }
        });
        let settings_of_nsp = NspSettings {
            address,
            keepalive: Duration::from_secs(30),
            backoff_max: Duration::from_millis(1),
        };
        let (sender, news) = watch::channel(Followed::default());
        let follow = follow_conduits(
            settings().into(),
            settings_of_nsp,
            Arc::new(|| None),
            servers.clone(),
            caller(),
            sender,
        );
        Self { servers, asked: was_asked, news, tasks: vec![server, tokio::spawn(follow)] }
    }

    async fn until(&mut self, what: &str, is_so: impl FnMut(&Followed) -> bool) {
        let wait = tokio::time::timeout(LIMIT, self.news.wait_for(is_so)).await;
        wait.unwrap_or_else(|_| panic!("{what}")).unwrap();
    }

    /// Owners of the newest list that was sent, of a family.
    fn newest(&self, step: usize) -> Value {
        let sent = self.servers.sent("POST").pop().unwrap();
        assert_eq!(sent.path, "/v1/transactions");
        sent.body["steps"][step]["body"].clone()
    }
}

#[tokio::test]
async fn each_list_replaces_the_conduits_of_all_families_in_one_step() {
    let servers = Recorder::new(|_| answer(&json!({"results": [], "revision": 1})));
    let (send, lists) = mpsc::unbounded_channel();
    let mut scene = Scene::begin(servers, vec![lists]).await;
    send.send(list(&[("b", "default"), ("x", "other"), ("a", ""), ("b", "default")])).unwrap();
    scene.until("the first list", |news| news.applied == 1).await;
    let expected = json!({
        "pool": "default-ipv4", "realm": "default",
        "prefixes": [{"owner": "b", "length": 20}, {"owner": "a", "length": 20}],
    });
    assert_eq!(scene.newest(0), expected);
    assert_eq!(scene.newest(1)["prefixes"][0], json!({"owner": "b", "length": 56}));
    send.send(list(&[])).unwrap();
    scene.until("the empty list", |news| news.applied == 2).await;
    assert_eq!(scene.newest(0)["prefixes"], json!([]));
    let asked = scene.asked.borrow().clone();
    assert_eq!((asked.len(), asked[0].trench.as_ref().unwrap().name.as_str()), (1, "default"));
    assert!(asked[0].name.is_empty(), "of any name");
}

#[tokio::test]
async fn a_list_that_can_not_be_applied_is_repeated_until_a_newer_one_replaces_it() {
    let servers = Recorder::new(|_| problem(ProblemCode::NoLeader));
    let (send, lists) = mpsc::unbounded_channel();
    let mut scene = Scene::begin(servers.clone(), vec![lists]).await;
    send.send(list(&[("a", "default")])).unwrap();
    scene.until("an error", |news| news.error.is_some()).await;
    send.send(list(&[("b", "default")])).unwrap();
    servers.until("POST", 3).await;
    servers.reply(|_| answer(&json!({"results": [], "revision": 1})));
    scene.until("the list", |news| news.applied == 1 && news.error.is_none()).await;
    assert_eq!(scene.newest(0)["prefixes"][0]["owner"], "b");
}

#[tokio::test]
async fn a_watch_that_ends_begins_again_and_changes_nothing_by_itself() {
    let servers = Recorder::new(|_| answer(&json!({"results": [], "revision": 1})));
    let (first, one) = mpsc::unbounded_channel();
    let (second, two) = mpsc::unbounded_channel();
    let mut scene = Scene::begin(servers.clone(), vec![one, two]).await;
    first.send(list(&[("a", "default")])).unwrap();
    scene.until("the first list", |news| news.applied == 1).await;
    first.send(Err(Status::internal("restart"))).unwrap();
    drop(first);
    scene.until("the failure", |news| news.failures == 1).await;
    let mut asked = scene.asked.clone();
    tokio::time::timeout(LIMIT, asked.wait_for(|asked| asked.len() == 2)).await.expect("a watch").unwrap();
    assert_eq!(servers.sent("POST").len(), 1, "the end of a watch is no list");
    second.send(list(&[("b", "default")])).unwrap();
    scene.until("the second list", |news| news.applied == 2).await;
}
