//! Mini kubelet: creates and deletes the pods of one node, by orders on standard input.
//!
//! Each order is a line of JSON, and so is each answer; orders run concurrently. Pods are created through a
//! container runtime (CRI), or by a CNI plugin alone, with the environment and the input that containerd
//! provides. Failed orders are retried, as in the kubelet, until a success or a time limit.

mod cri;
mod order;
mod plugins;
mod sandboxes;

use std::io::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Parser;
use order::{Action, Answer, Order};
use plugins::Plugins;
use sandboxes::Sandboxes;
use tokio::sync::Semaphore;

/// Creates and deletes pods by orders on standard input, for tests
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  mini-kubelet --cri /run/containerd/containerd.sock
  mini-kubelet --network /etc/cni/net.d/lan.conf --plugin /opt/cni/bin/ipam-cni
Orders:
  {\"id\": 1, \"create\": {\"namespace\": \"shop\", \"name\": \"web-0\", \"uid\": \"u1\"}}
  {\"id\": 2, \"delete\": {\"namespace\": \"shop\", \"name\": \"web-0\", \"uid\": \"u1\"}}")]
struct Arguments {
    /// Socket of the container runtime
    #[arg(long, value_name = "PATH", required_unless_present = "network", conflicts_with = "network")]
    cri: Option<PathBuf>,
    /// Network configuration of one plugin, in place of a container runtime
    #[arg(long, value_name = "FILE", requires = "plugin")]
    network: Option<PathBuf>,
    /// Plugin to run with that configuration
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Orders that run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    parallel: usize,
}

/// Creates pods.
enum Runtime {
    Sandboxes(Sandboxes),
    Plugins(Plugins),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // Plugins and the runtime do the work, so that one thread suffices.
    tokio::task::LocalSet::new().run_until(serve(Arguments::parse())).await
}

/// Executes orders until the input ends.
async fn serve(arguments: Arguments) -> Result<()> {
    let runtime = match (arguments.cri, arguments.network, arguments.plugin) {
        (Some(socket), ..) => Runtime::Sandboxes(Sandboxes::new(socket)),
        (None, Some(network), Some(plugin)) => Runtime::Plugins(Plugins::read(&network, plugin)?),
        _ => anyhow::bail!("name a container runtime (--cri) or a plugin (--network, --plugin)"),
    };
    let (runtime, permits) = (Rc::new(runtime), Arc::new(Semaphore::new(arguments.parallel)));
    let (answers, answered) = std::sync::mpsc::channel::<Answer>();
    let printer = tokio::task::spawn_blocking(move || {
        let mut output = std::io::stdout();
        answered.into_iter().try_for_each(|answer| {
            writeln!(output, "{}", serde_json::to_string(&answer)?)?;
            anyhow::Ok(output.flush()?)
        })
    });
    let (lines, mut orders) = tokio::sync::mpsc::unbounded_channel();
    let reader = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lines() {
            let line = line?;
            lines.send(serde_json::from_str(&line).with_context(|| format!("the order {line}"))?)?;
        }
        anyhow::Ok(())
    });
    while let Some(Order { id, once, action }) = orders.recv().await {
        let (runtime, answers) = (Rc::clone(&runtime), answers.clone());
        let permit = Arc::clone(&permits).acquire_owned().await?;
        tokio::task::spawn_local(async move {
            let began = std::time::Instant::now();
            let result = runtime.carry_out(action, once).await;
            let _ = answers.send(Answer::new(id, result, began.elapsed()));
            drop(permit);
        });
    }
    drop(answers);
    reader.await??;
    printer.await?
}

impl Runtime {
    async fn carry_out(&self, action: Action, once: bool) -> Result<order::Created> {
        match (self, action) {
            (Self::Sandboxes(sandboxes), Action::Create(pod)) => sandboxes.create(&pod, once).await,
            (Self::Sandboxes(sandboxes), Action::Delete(pod)) => sandboxes.delete(&pod, once).await,
            (Self::Plugins(plugins), Action::Create(pod)) => plugins.create(&pod).await,
            (Self::Plugins(plugins), Action::Delete(pod)) => plugins.delete(&pod).await,
        }
    }
}
