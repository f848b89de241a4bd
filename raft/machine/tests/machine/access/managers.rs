//! A managed resource is changed by its manager, or with `take_over`.

use ipam_api::Code;
use ipam_machine::Action;
use ipam_machine::command::{Kind, Manager, Metadata, Text, Transaction};

use crate::access::world::{World, admin, delete, managed, pool};

fn metadata(manager: Option<&str>) -> Metadata {
    Metadata { managed_by: manager.map(Text::given), ..Metadata::default() }
}

#[test]
fn only_the_manager_changes_its_resources() {
    let mut world = World::new();
    let action = |range: &str, manager| pool("git", "lan", range, metadata(manager));
    let refused = Some(Code::ManagedElsewhere);
    assert_eq!(world.code(admin(), action("10.0.0.30", Some("argocd"))), None, "creating takes it");
    assert_eq!(world.code(admin(), action("10.0.0.30", Some("argocd"))), None, "nothing changes");
    assert_eq!(world.code(admin(), action("10.0.0.31", Some("argocd"))), refused, "not asked as the manager");
    let flux = || managed(admin(), Manager::Named(Text::given("flux")));
    assert_eq!(world.code(flux(), action("10.0.0.31", Some("flux"))), refused);
    assert_eq!(world.code(flux(), delete(Kind::Pool, "git")), refused);
    assert_eq!(world.code(admin(), delete(Kind::Pool, "git")), refused);
    let argocd = || managed(admin(), Manager::Named(Text::given("argocd")));
    assert_eq!(world.code(argocd(), action("10.0.0.31", Some("argocd"))), None);
    let take_over = || managed(admin(), Manager::TakeOver);
    assert_eq!(world.code(take_over(), action("10.0.0.31", Some("flux"))), None);
    assert_eq!(world.code(argocd(), action("10.0.0.32", Some("argocd"))), refused, "it is flux's now");
    assert_eq!(world.code(flux(), delete(Kind::Pool, "git")), None);
}

#[test]
fn a_transaction_asks_in_one_management() {
    let mut world = World::new();
    world.run(admin(), pool("git", "lan", "10.0.0.30", metadata(Some("argocd")))).unwrap();
    let steps = vec![
        pool("mine", "lan", "10.0.0.40", metadata(None)),
        pool("git", "lan", "10.0.0.31", metadata(Some("argocd"))),
    ];
    let action = Action::Transaction(Transaction { preconditions: Vec::new(), steps });
    let before = world.state.digest();
    assert_eq!(world.code(admin(), action.clone()), Some(Code::ManagedElsewhere));
    assert_eq!(world.state.digest(), before);
    assert_eq!(world.code(managed(admin(), Manager::Named(Text::given("argocd"))), action), None);
}
