//! Removal of the plugin and its network configurations from a node.
//!
//! A container that has addresses needs the plugin for its DEL, so nothing is removed while the agent knows
//! an attachment. Since an ADD may run at the same time, the files are first moved aside, and deleted only if
//! there is still no attachment then.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ipam_api::agent::NodeAttachments;
use ipam_api::brand::CNI_TYPE;

use super::agent;
use super::command::Trouble;
use super::file::{Aside, Directory};

/// Files to remove.
pub(super) struct Removal<'a> {
    /// Directory of the plugin.
    pub(super) programs: Option<&'a Path>,
    /// Directory of network configurations, and the names of the files to remove.
    pub(super) networks: Option<(&'a Path, Vec<String>)>,
    /// Socket of the node's agent.
    pub(super) agent: &'a Path,
    /// Time from the start of a plugin process until the agent knows its ADD.
    pub(super) settle: Duration,
}

impl Removal<'_> {
    /// Removes the files, and returns their paths.
    ///
    /// # Errors
    /// The attachments that need the files, or a file that can't be removed. All files are in their places
    /// then, except those that the message reports as removed.
    pub(super) async fn carry_out(&self) -> Result<Vec<String>, Trouble> {
        self.check().await?;
        let networks = self.networks.as_ref().map(|(dir, _)| open(dir)).transpose()?;
        let programs = self.programs.map(open).transpose()?;
        let mut aside = Vec::new();
        // A runtime starts no ADD without its network configuration, but may notice the removal with a delay.
        if let (Some(directory), Some((_, names))) = (&networks, &self.networks) {
            for name in names {
                self.set_aside(directory, name, &mut aside)?;
            }
            self.check_again(&mut aside).await?;
        }
        if let Some(directory) = &programs {
            self.set_aside(directory, CNI_TYPE, &mut aside)?;
            // No new ADD can start. A running one reaches the agent within this time.
            tokio::time::sleep(self.settle).await;
            self.check_again(&mut aside).await?;
        }
        let mut removed: Vec<String> = Vec::new();
        // The plugin is the last file, so networks that are put back still have it.
        while let Some(file) = aside.first() {
            let path = file.path().display().to_string();
            if let Err(error) = file.delete() {
                let mut trouble = Trouble::file(&path, &error);
                for path in removed {
                    let _ = write!(trouble.text, "\n{path} was removed");
                }
                return Err(put_back(&mut aside, trouble));
            }
            aside.remove(0);
            removed.push(path);
        }
        Ok(removed)
    }

    /// Refuses while the agent knows an attachment, or doesn't answer.
    async fn check(&self) -> Result<(), Trouble> {
        match agent::attachments(self.agent).await {
            Ok(known) if known.total == 0 => Ok(()),
            Ok(known) => Err(Trouble::new(in_use(&known))),
            Err(problem) => Err(Trouble::new(format!(
                "the agent at {} can't say which containers of this node have addresses: {}\n\
                 Nothing was removed. Start the agent and repeat the command.",
                self.agent.display(),
                problem.detail
            ))),
        }
    }

    async fn check_again(&self, aside: &mut Vec<Aside<'_>>) -> Result<(), Trouble> {
        match self.check().await {
            Ok(()) => Ok(()),
            Err(trouble) => Err(put_back(aside, trouble)),
        }
    }

    fn set_aside<'d>(
        &self,
        directory: &'d Directory,
        name: &str,
        aside: &mut Vec<Aside<'d>>,
    ) -> Result<(), Trouble> {
        match directory.set_aside(name) {
            Ok(file) => {
                aside.extend(file);
                Ok(())
            }
            Err(error) => {
                let path = directory.file(name).display().to_string();
                Err(put_back(aside, Trouble::file(&path, &error)))
            }
        }
    }
}

fn open(dir: &Path) -> Result<Directory, Trouble> {
    Directory::open(dir).map_err(|error| Trouble::file(&dir.display().to_string(), &error))
}

/// Puts all files back in their places; returns the trouble.
fn put_back(aside: &mut Vec<Aside<'_>>, mut trouble: Trouble) -> Trouble {
    for file in aside.drain(..).rev() {
        let path = file.path().display().to_string();
        if let Err(error) = file.put_back() {
            let _ = write!(trouble.text, "\n{path} could not be put back: {error}");
        }
    }
    trouble
}

/// Text that names the attachments of a node.
fn in_use(known: &NodeAttachments) -> String {
    let mut text = format!("{} attachments of this node need the plugin:", known.total);
    for attachment in &known.attachments {
        let endpoint = attachment.endpoint.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
        let state = if attachment.deleting { ", its release is not delivered yet" } else { "" };
        let _ = write!(
            text,
            "\n  {endpoint}: network {}, container {}, interface {}{state}",
            attachment.config, attachment.container_id, attachment.interface
        );
    }
    let unnamed = known.total.saturating_sub(known.attachments.len() as u64);
    if unnamed > 0 {
        let _ = write!(text, "\n  and {unnamed} more");
    }
    text.push_str(
        "\nNothing was removed. Delete these pods, or move them to other nodes, and repeat the command.",
    );
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use serde_json::{Value, json};

    use super::*;

    fn nothing() -> Value {
        json!({"total": 0, "attachments": []})
    }

    fn one(more: u64) -> Value {
        let endpoint = json!({"kind": "pod", "realm": "eu", "namespace": "shop", "name": "web-0"});
        let attachment =
            json!({"config": "lan", "container_id": "c1", "interface": "eth0", "endpoint": endpoint});
        json!({"total": 1 + more, "attachments": [attachment]})
    }

    /// Agent that gives these answers, one after the other.
    fn agent(dir: &Path, answers: Vec<Value>) {
        let listener = UnixListener::bind(dir.join("agent.sock")).unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.extend(byte);
                }
                let body = answer.to_string();
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
    }

    /// Directories of a node, with a plugin and a network.
    fn node() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bin", "net.d"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for (folder, name) in [("bin", CNI_TYPE), ("bin", "other"), ("net.d", "10-lan.conflist")] {
            std::fs::write(dir.path().join(folder).join(name), "").unwrap();
        }
        dir
    }

    /// Removes the plugin and two networks while the agent gives these answers. Returns the outcome
    /// with the text of a failure, and the files that are left.
    async fn remove(dir: &Path, answers: Vec<Value>) -> (Result<Vec<String>, String>, Vec<String>) {
        let [bin, net] = ["bin", "net.d"].map(|name| dir.join(name));
        agent(dir, answers);
        let removal = Removal {
            programs: Some(&bin),
            networks: Some((&net, vec!["10-lan.conflist".to_owned(), "20-wan.conf".to_owned()])),
            agent: &dir.join("agent.sock"),
            settle: Duration::ZERO,
        };
        let result = removal.carry_out().await.map_err(|trouble| trouble.text);
        let entries = [&net, &bin].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let mut left: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        (result, left)
    }

    #[tokio::test]
    async fn all_files_go_without_attachments() {
        let (removed, left) = remove(node().path(), vec![nothing(), nothing(), nothing()]).await;
        assert_eq!(removed.unwrap().len(), 2);
        assert_eq!(left, ["other"]);
    }

    #[tokio::test]
    async fn a_failed_deletion_puts_all_other_files_back() {
        let node = node();
        // A directory can be moved aside, and not be deleted as a file.
        std::fs::create_dir(node.path().join("net.d/20-wan.conf")).unwrap();
        let (failed, left) = remove(node.path(), vec![nothing(), nothing(), nothing()]).await;
        let text = failed.unwrap_err();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("net.d/20-wan.conf: ") && lines.len() == 2, "{text}");
        assert!(lines[1].ends_with("net.d/10-lan.conflist was removed"), "{text}");
        assert_eq!(left, ["20-wan.conf", CNI_TYPE, "other"]);
    }

    #[tokio::test]
    async fn an_attachment_at_any_moment_keeps_all_files() {
        for before in 0..3 {
            let answers = std::iter::repeat_n(nothing(), before).chain([one(4)]).collect();
            let (refused, left) = remove(node().path(), answers).await;
            let text = refused.unwrap_err();
            assert!(text.contains("pod/eu/shop/web-0: network lan, container c1, interface eth0"), "{text}");
            assert!(text.contains("5 attachments") && text.contains("and 4 more"), "{text}");
            assert_eq!(left, ["10-lan.conflist", CNI_TYPE, "other"], "after {before} looks");
        }
    }
}
