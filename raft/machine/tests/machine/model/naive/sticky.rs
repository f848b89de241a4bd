//! The model's endpoints that come back.

use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKind, Lifecycle, ScaleDown};
use ipam_api::{Code, Family};
use ipam_machine::command::{
    Allocate, InterfaceRequest, ReleaseAttachment, ReleaseAttachmentOf, ScaleController, Started,
};
use ipam_machine::model::Sticky;

use crate::model::naive::{Held, Incarnation, Model, Reply, Spot};

impl Model {
    /// Incarnation that the request means: a sticky one for a sticky request, else the one with its uid.
    pub(crate) fn meant(&self, request: &Allocate) -> Option<&Incarnation> {
        let newest = || self.endpoints.iter().rev().filter(|one| one.key == request.endpoint);
        let sticky = newest().find(|one| request.stickiness.is_sticky() && one.sticky.is_some());
        let is_taken = |one: &Incarnation| {
            request.endpoint.kind == EndpointKind::Host && (one.uid.is_none() || request.options.take_over)
        };
        sticky
            .or_else(|| newest().find(|one| request.uid.is_none() || request.uid == one.uid || is_taken(one)))
    }

    /// Gives the only incarnation of a host the uid of a request; true if it had another one.
    pub(crate) fn take_over(&mut self, request: &Allocate) -> Result<bool, Code> {
        if request.endpoint.kind != EndpointKind::Host || request.uid.is_none() {
            return Ok(false);
        }
        let rows: Vec<&Incarnation> =
            self.endpoints.iter().filter(|one| one.key == request.endpoint).collect();
        let Some(row) = rows.first() else { return Ok(false) };
        assert_eq!(rows.len(), 1, "a host is one machine at a time");
        if row.uid == request.uid {
            return Ok(false);
        }
        if row.uid.is_some() && !request.options.take_over {
            return Err(Code::HostReinstalled);
        }
        let (number, had_uid) = (row.number, row.uid.is_some());
        let row = self.endpoints.iter_mut().find(|one| one.number == number).expect("it was just found");
        row.uid.clone_from(&request.uid);
        if had_uid {
            row.claim = None;
        }
        self.forget_empty();
        Ok(true)
    }

    /// True if the endpoint keeps its allocations.
    pub(crate) fn keeps(request: &Allocate, meant: Option<&Incarnation>) -> bool {
        request.lifecycle != Lifecycle::Leased
            && (request.stickiness.is_sticky() || meant.is_some_and(|meant| meant.sticky.is_some()))
    }

    /// Allocations that an endpoint may reuse on an interface, newest first.
    pub(crate) fn portable(
        &self,
        request: &Allocate,
        meant: Option<&Incarnation>,
        interface: &InterfaceRequest,
    ) -> Vec<Held> {
        let Some(meant) = meant else { return Vec::new() };
        let sticky = Model::keeps(request, Some(meant));
        let on_it = self
            .held
            .iter()
            .rev()
            .filter(|one| one.endpoint == meant.number && one.interface == interface.name)
            .filter(|one| one.lifecycle != Lifecycle::Leased);
        let same = |one: &AttachmentKey, other: &AttachmentKey| {
            one.node == other.node && one.container_id == other.container_id
        };
        on_it
            .filter(|one| match &request.attachment {
                None => sticky,
                Some(key) if sticky => !one.attachments.iter().any(|other| same(other, key)),
                Some(key) => {
                    let same_uid = request.uid.is_some() && request.uid == meant.uid;
                    same_uid
                        && one.lifecycle == Lifecycle::Attached
                        && one.attachments.iter().any(|other| {
                            let of_another =
                                AttachmentKey { container_id: key.container_id.clone(), ..other.clone() };
                            of_another == *key && other != key
                        })
                }
            })
            .cloned()
            .collect()
    }

    /// The incarnation as a request leaves it.
    pub(crate) fn updated_endpoint(meant: &Incarnation, request: &Allocate) -> Incarnation {
        let said = &request.stickiness;
        let controller = if said.controller.is_some() { &said.controller } else { &meant.controller };
        let meant = &Incarnation { controller: controller.clone(), ..meant.clone() };
        if meant.sticky.is_none() && !said.is_sticky() {
            return meant.clone();
        }
        let before = meant.sticky.clone().unwrap_or_default();
        let sticky = Sticky { scale_down: said.scale_down.or(before.scale_down), wanted: true };
        let uid = if request.uid.is_some() { request.uid.clone() } else { meant.uid.clone() };
        Incarnation { uid, sticky: Some(sticky), ..meant.clone() }
    }

    fn policy(&self, sticky: &Sticky, one: &Held) -> ScaleDown {
        sticky.scale_down.unwrap_or_else(|| self.pools.get(&one.pool).expect("it is held").spec.scale_down)
    }

    /// True if an address remains after the end of one attachment.
    pub(crate) fn kept(&self, place: usize) -> bool {
        let one = &self.held[place];
        if one.attachments.len() > 1 {
            return true;
        }
        let endpoint = self.endpoints.iter().find(|other| other.number == one.endpoint).expect("it has one");
        let Some(sticky) = &endpoint.sticky else { return false };
        let replaced = self.held[place + 1..].iter().any(|newer| {
            newer.endpoint == one.endpoint
                && newer.lifecycle != Lifecycle::Leased
                && newer.interface == one.interface
                && Family::of(newer.address) == Family::of(one.address)
        });
        let kept = one.lifecycle == Lifecycle::Held || self.policy(sticky, one) == ScaleDown::Keep;
        !replaced && (sticky.wanted || kept)
    }

    pub(crate) fn release_attachment(&mut self, key: &AttachmentKey, started: &Started) -> Reply {
        if let Some((living, _)) = self.attachments.get(key)
            && self.began_before(key, started, living)
        {
            return Reply::Late;
        }
        self.write_tombstone(key, started);
        self.detach_all(key)
    }

    pub(crate) fn detach_all(&mut self, key: &AttachmentKey) -> Reply {
        let stay: Vec<usize> = (0..self.held.len())
            .filter(|place| self.held[*place].attachments.contains(key) && self.kept(*place))
            .collect();
        for place in stay {
            let one = &mut self.held[place];
            one.attachments.retain(|other| other != key);
            one.node = one.attachments.last().map(|key| key.node.clone());
        }
        let said = self.release(|one| one.attachments.contains(key));
        self.give_up_preallocated(said)
    }

    /// A DEL that names its workload.
    pub(crate) fn release_attachment_of(&mut self, of: &ReleaseAttachmentOf) -> Reply {
        let ReleaseAttachment { key, started } = &of.release;
        let exists = self.attachments.contains_key(key);
        let said = self.release_attachment(key, started);
        if exists || key.realm != of.endpoint.realm {
            return said;
        }
        let is_meant = |one: &&Incarnation| one.key == of.endpoint && one.uid.as_ref() == Some(&of.uid);
        let meant: Vec<u64> = self.endpoints.iter().filter(is_meant).map(|one| one.number).collect();
        let ends: Vec<Spot> = (0..self.held.len())
            .filter(|place| {
                let one = &self.held[*place];
                one.adopted
                    && one.attachments.is_empty()
                    && one.node.as_ref() == Some(&key.node)
                    && meant.contains(&one.endpoint)
                    && !self.kept(*place)
            })
            .map(|place| self.held[place].spot())
            .collect();
        self.release(|one| ends.contains(&one.spot()))
    }

    pub(crate) fn scale(&mut self, scale: &ScaleController) -> Reply {
        let mut addresses = Vec::new();
        for place in (0..self.endpoints.len()).rev() {
            let one = &self.endpoints[place];
            let Some(sticky) = one.sticky.clone() else { continue };
            let Some(by) = &one.controller else { continue };
            let other = &scale.controller;
            if (&by.group, &by.kind, &by.name) != (&other.group, &other.kind, &other.name)
                || (&one.key.realm, &one.key.namespace) != (&scale.realm, &scale.namespace)
                || by.uid.is_some() && other.uid.is_some() && by.uid != other.uid
            {
                continue;
            }
            let is = |number: &u32| one.key.name.as_str() == format!("{}-{number}", other.name);
            let wanted = match (0..100).find(is) {
                Some(number) => number >= scale.start && number < scale.start + scale.replicas,
                None => scale.replicas > 0,
            };
            let number = one.number;
            let changed = Sticky { wanted, ..sticky.clone() };
            let going: Vec<Spot> = self
                .held
                .iter()
                .filter(|held| {
                    held.endpoint == number
                        && !wanted
                        && held.attachments.is_empty()
                        && held.lifecycle == Lifecycle::Attached
                        && self.policy(&sticky, held) == ScaleDown::Release
                })
                .map(Held::spot)
                .collect();
            self.endpoints[place].sticky = Some(changed);
            addresses.push(going);
        }
        // The oldest endpoint first.
        let mut all = Vec::new();
        for going in addresses.into_iter().rev() {
            if let Reply::Released(more) = self.release(|one| going.contains(&one.spot())) {
                all.extend(more);
            }
        }
        Reply::Released(all)
    }
}
