//! Process of the plugin, run by a runtime or by hand.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Read first: the servers refuse an ADD that began before the DEL of its attachment.
    let started = ipam_cni::started::now();
    let environment = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    if environment(ipam_cni::environment::COMMAND).is_none_or(|command| command.is_empty()) {
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
        return ipam_cni::manual_run::answer(&arguments, &environment);
    }
    ipam_cni::plugin(&environment, started)
}
