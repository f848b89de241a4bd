//! Host policies: templates of the configuration of hosts.
//!
//! A policy holds no address: its endpoints do, and they outlive it.

use crate::apply::step::Step;
use crate::command::{Answer, HostPolicySpec, Put, Refusal};
use crate::state::refuse::{check_expected, immutable};
use crate::state::row::HostPolicy;
use crate::value::Kind;
use crate::value::cause::Constant;

impl Step<'_> {
    pub(crate) fn put_host_policy(&mut self, put: &Put<HostPolicySpec>) -> Result<Answer, Refusal> {
        let spec = &put.spec;
        let old = self.state.find_row::<HostPolicy>(&spec.name).map(|(_, row)| row);
        check_expected(Kind::HostPolicy, &spec.name, old.map(|row| &row.meta), put.expect)?;
        if let Some(row) = old.filter(|row| row.spec.realm != spec.realm) {
            let realm = Constant::Realm(row.spec.realm.clone());
            return Err(immutable(Kind::HostPolicy, &spec.name, realm));
        }
        self.put_described::<HostPolicy>((&spec.name).into(), put)
    }
}
