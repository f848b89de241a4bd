//! Proxy between a client and a server, which kills a process at a step of a request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Step of a request, as the proxy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client has sent the request, and the server hasn't got it.
    Sent,
    /// The server has got the request, and may have executed it.
    Forwarded,
    /// The server has answered, and the client hasn't got the answer.
    Answered,
}

/// Process to kill at a step of a request.
#[derive(Debug, Clone)]
struct Plan {
    pid: u32,
    /// Beginning of the request.
    head: String,
    step: Step,
    /// Requests to the path before that one.
    earlier: usize,
}

/// Running proxy. It ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) url: String,
    plan: Arc<Mutex<Option<Plan>>>,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        Self::with(server, Arc::new(Mutex::new(None))).await
    }

    /// A proxy to another server that counts the same requests.
    pub(crate) async fn beside(&self, server: SocketAddr) -> Self {
        Self::with(server, self.plan.clone()).await
    }

    async fn with(server: SocketAddr, plan: Arc<Mutex<Option<Plan>>>) -> Self {
        let listener = TcpListener::bind((server.ip(), 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = plan.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, shared.clone()));
            }
        });
        Self { url, plan }
    }

    /// Kills a process at a step of the next request to `path`.
    pub(crate) fn kill_at(&self, pid: u32, path: &'static str, step: Step) {
        self.kill_after(0, pid, path, step);
    }

    /// The same for a request that comes after `earlier` others.
    pub(crate) fn kill_after(&self, earlier: usize, pid: u32, path: &'static str, step: Step) {
        let head = format!("POST {path} ");
        *self.plan.lock().unwrap() = Some(Plan { pid, head, step, earlier });
    }

    /// Kills a process at a step of the next request that begins with `head`: a method and a part of a path.
    pub(crate) fn kill_at_head(&self, pid: u32, head: &str, step: Step) {
        *self.plan.lock().unwrap() = Some(Plan { pid, head: head.to_owned(), step, earlier: 0 });
    }

    /// Returns true once the process was killed.
    pub(crate) fn has_killed(&self) -> bool {
        self.plan.lock().unwrap().is_none()
    }
}

/// Relays one connection, which carries one request at a time.
async fn relay(mut client: TcpStream, server: SocketAddr, plan: Arc<Mutex<Option<Plan>>>) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let (mut request, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut armed = None;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(bytes @ 1..) = read else { return };
                let head = String::from_utf8_lossy(&request[..bytes]).into_owned();
                let hit = hit(&plan, &head);
                armed = hit.or(armed);
                if hit == Some(Step::Sent) {
                    return strike(&plan);
                }
                if server.write_all(&request[..bytes]).await.is_err() { return }
                if hit == Some(Step::Forwarded) {
                    return strike(&plan);
                }
            }
            read = server.read(&mut answer) => {
                let Ok(bytes @ 1..) = read else { return };
                if armed == Some(Step::Answered) {
                    return strike(&plan);
                }
                if client.write_all(&answer[..bytes]).await.is_err() { return }
            }
        }
    }
}

/// Step of the plan, if the request with this head is the one to kill at; others are counted.
fn hit(plan: &Mutex<Option<Plan>>, head: &str) -> Option<Step> {
    let mut plan = plan.lock().unwrap();
    let hit = plan.as_mut().filter(|plan| head.starts_with(&plan.head))?;
    if hit.earlier > 0 {
        hit.earlier -= 1;
        return None;
    }
    Some(hit.step)
}

/// Kills the process, unless the step of another request has come first.
fn strike(plan: &Mutex<Option<Plan>>) {
    if let Some(Plan { pid, .. }) = plan.lock().unwrap().take() {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
}
