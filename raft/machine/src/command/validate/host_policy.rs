//! Checks of host policies that need no state. The HTTP boundary checks their templates.

use ipam_api::Family;
use ipam_api::limits::{
    HOST_POLICY_CAPTURES_MAX, HOST_POLICY_STATE_BYTES_MAX, INTERFACES_MAX, LABEL_KEY_CHARS_MAX,
    POOLS_NAMED_MAX, TEXT_CHARS_MAX,
};

use crate::command::validate::within;
use crate::command::{Cause, HostPolicySpec, MaxUnavailable, Refusal};
use crate::value::cause::Counted;
use crate::value::refuse_if;

impl HostPolicySpec {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        // The policy's endpoints would be those of the hosts' own agents.
        refuse_if(self.name.as_str() == ipam_api::brand::DEFAULT, || Cause::HostPolicyDefault)?;
        within(Counted::DesiredStateBytes, self.desired_state.len(), HOST_POLICY_STATE_BYTES_MAX)?;
        within(Counted::Captures, self.capture.len(), HOST_POLICY_CAPTURES_MAX)?;
        for (name, expression) in &self.capture {
            within(Counted::CaptureBytes, name.len(), LABEL_KEY_CHARS_MAX)?;
            within(Counted::CaptureBytes, expression.len(), 4 * TEXT_CHARS_MAX)?;
        }
        within(Counted::Interfaces, self.interfaces.len(), INTERFACES_MAX)?;
        for interface in &self.interfaces {
            for family in Family::BOTH {
                within(Counted::InterfacePools(family), interface.pools(family).len(), POOLS_NAMED_MAX)?;
            }
        }
        let (least, most) = match self.max_unavailable {
            MaxUnavailable::Count(count) => (count, count),
            MaxUnavailable::Percent(percent) => (percent.into(), u32::from(percent)),
        };
        let is_percentage = matches!(self.max_unavailable, MaxUnavailable::Percent(_));
        refuse_if(least == 0 || (is_percentage && most > 100), || Cause::MaxUnavailable)?;
        self.metadata.check()
    }
}
