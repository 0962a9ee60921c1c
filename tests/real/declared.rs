//! Virtual clusters that VirtualCluster objects on the host declare.
//!
//! These trials have hosts of their own, because the kind would appear in the virtual clusters of other trials.

mod deletion;
mod expressions;
mod invalid;
mod kubeconfigs;
mod serving;
mod sets;
mod world;

use libtest_mimic::Trial;

use crate::trial::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("declared::objects_are_served", serving::objects_are_served),
        trial("declared::expressions_select_nodes", expressions::expressions_select_nodes),
        trial("declared::invalid_objects_are_refused", invalid::objects_are_refused),
        trial("declared::kubeconfigs_are_stored_and_renewed", kubeconfigs::kubeconfigs_are_stored_and_renewed),
        trial("declared::sets_own_what_they_create", sets::sets_own_what_they_create),
        trial("declared::deletion_policies_are_carried_out", deletion::policies_are_carried_out),
    ]
}
