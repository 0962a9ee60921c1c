//! Virtual clusters: requests of clients, administrators and attackers.
//!
//! All tests share one site, and each has its own namespaces. The first test starts the site.

pub(crate) mod admission_policies;
mod affinity;
mod apply;
mod bounds;
mod burst;
mod clients;
mod control_plane;
mod creates;
mod credentials;
mod custom;
mod definitions;
mod dry_run;
mod endpoints;
mod errors;
mod escape;
mod first_use;
mod guard;
mod host_tokens;
mod hostile;
mod limits;
mod namespaces;
mod node_ports;
mod node_selector;
mod operators;
mod order;
mod overlays;
mod patches;
mod pod_security;
mod policies;
mod proxied;
mod reads;
mod revisions;
mod revoked;
mod rights;
pub(crate) mod roles;
mod scope;
mod shared;
mod streams;
mod watches;
mod yaml;

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use anyhow::anyhow;
use atoll_tests::VirtualSite;
use libtest_mimic::Trial;

use crate::trial::trial;

/// The clusters of the edge-cluster proposal, and the locations of their nodes.
const CLUSTERS: [(&str, &str); 2] = [(BEIJING, "beijing"), (HANGZHOU, "hangzhou")];
const BEIJING: &str = "ke-beijing";
const HANGZHOU: &str = "ke-hangzhou";

/// A test in the list of its module.
type Listed = (&'static str, fn(&VirtualSite) -> anyhow::Result<()>);

/// The shared state of the tests.
#[derive(Default)]
struct World {
    site: OnceLock<anyhow::Result<VirtualSite>>,
    /// Tests that must be the only writers on the host hold the write lock.
    quiet: RwLock<()>,
}

/// Whether other tests may run at the same time.
#[derive(Clone, Copy)]
enum Company {
    Welcome,
    Unwelcome,
}

#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn trials() -> Vec<Trial> {
    use Company::{Unwelcome, Welcome};
    let world = Arc::new(World::default());
    let case = |name: &str, company, run: fn(&VirtualSite) -> anyhow::Result<()>| {
        let world = Arc::clone(&world);
        trial(format!("virtual::{name}"), move || world.run(company, run))
    };
    let own = |name: &str, run: fn() -> anyhow::Result<()>| trial(format!("virtual::{name}"), run);
    let mut trials = vec![
        own("the_policies_need_no_mutation", admission_policies::direct_requests_are_refused_without_mutating_policies),
        own("a_host_without_policies_is_refused", admission_policies::a_host_without_one_is_refused),
        own("a_host_that_enforces_no_policy_is_refused", admission_policies::a_host_that_enforces_none_is_refused),
        own(
            "a_host_with_unverified_policies_is_refused",
            admission_policies::a_host_with_an_unreachable_webhook_is_refused,
        ),
        own("control_plane_where_no_policy_holds", control_plane::where_no_policy_holds),
        own("policies_replace_those_of_an_earlier_version", policies::replace_those_of_an_earlier_version),
        own("rights_a_first_use_is_never_refused", first_use::is_never_refused),
        case("watches_show_own_objects", Welcome, watches::show_their_own),
        case("daemon_sets_stay_on_their_nodes", Welcome, guard::daemon_sets_stay_on_their_nodes),
        case("another_location_is_refused", Welcome, guard::another_location_is_refused),
        case("no_patch_removes_the_guard", Welcome, guard::no_patch_removes_the_guard),
        case("objects_can_be_written_back", Welcome, guard::objects_can_be_written_back),
        case("pods_and_jobs_can_be_updated", Welcome, guard::pods_and_jobs_can_be_updated),
        case("appliers_share_a_template", Welcome, apply::appliers_share_a_template),
        case(
            "who_cannot_see_the_guard_has_no_conflict_over_it",
            Welcome,
            apply::who_cannot_see_the_guard_has_no_conflict_over_it,
        ),
        case("an_applier_keeps_its_selector", Welcome, apply::an_applier_keeps_its_selector),
        case("an_apply_takes_no_selector", Welcome, apply::the_selector_stays_whatever_is_called_like_it),
        case("an_apply_need_not_have_metadata", Welcome, apply::an_apply_need_not_have_metadata),
        case("control_plane_statuses_of_pods", Welcome, control_plane::statuses_of_pods),
        case("control_plane_addresses_of_services", Welcome, control_plane::addresses_of_services),
        case("control_plane_volumes_of_claims", Welcome, control_plane::volumes_of_claims),
        case("control_plane_labels_of_nodes", Welcome, control_plane::labels_of_nodes),
        case("policies_are_one_set", Welcome, policies::are_one_set),
        case("policies_refuse_bindings_like_mirrors", Welcome, policies::refuse_bindings_like_mirrors),
        case("policies_are_restored", Unwelcome, policies::are_restored),
        case("policies_ignore_cluster_scoped_objects", Welcome, policies::leave_what_is_in_no_namespace),
        case("policies_read_the_namespace", Welcome, policies::read_the_namespace),
        case("policies_protect_what_the_operator_lists", Welcome, policies::protect_what_the_operator_lists),
        case(
            "the_host_enforces_the_policies",
            Welcome,
            admission_policies::direct_requests_are_refused_with_mutating_policies,
        ),
        case("rights_end_with_their_namespace", Welcome, rights::end_with_their_namespace),
        case("the_administrator_keeps_all_rights", Welcome, rights::the_administrator_keeps_all_rights),
        case("a_stuck_namespace_can_be_repaired", Welcome, rights::a_stuck_namespace_can_be_repaired),
        case("queries_without_end_are_refused", Welcome, scope::queries_without_end_are_refused),
        case("reviews_equal_those_of_the_host", Welcome, scope::reviews_equal_those_of_the_host),
        case("reviews_match_authorization", Welcome, scope::reviews_match_authorization),
        case("tokens_are_valid_in_their_cluster", Welcome, scope::tokens_are_valid_in_their_cluster),
        case("roles_a_binding_holds_at_once", Welcome, roles::a_binding_holds_everywhere_and_at_once),
        case("roles_grant_only_rights_of_the_writer", Welcome, roles::nobody_grants_what_they_lack),
        case("roles_aggregate_in_their_cluster", Welcome, roles::aggregation_stays_in_the_cluster),
        case("roles_aggregate_by_selectors", Welcome, roles::roles_aggregate_by_selectors),
        case("roles_of_impersonators_are_confined", Welcome, roles::impersonation_stays_in_the_cluster),
        case("roles_updates_take_the_right_to_create", Welcome, creates::of_roles_and_bindings_take_the_right_to),
        case("roles_kubectl_works_on_them", Welcome, roles::kubectl_works_on_them_as_anywhere),
        case("both_clusters_have_a_shared_definition", Welcome, shared::definitions_are_had_twice),
        case("shared_changes_need_all_clusters", Welcome, shared::changes_are_agreed),
        case("shared_classes_take_every_write", Welcome, shared::classes_take_every_write),
        case("shared_classes_get_the_hosts_finalizers", Welcome, shared::classes_get_the_hosts_finalizers),
        case("shared_objects_cannot_affect_the_host", Welcome, shared::power_over_the_host_is_not_given),
        case("shared_objects_become_stable", Welcome, shared::there_is_no_write_war),
        case("reads_every_kind", Welcome, reads::every_kind_can_be_read),
        case("reads_nothing_that_acts_on_the_host", Welcome, reads::what_acts_on_the_host_is_not_shown),
        case("reads_what_belongs_to_the_cluster", Welcome, reads::what_belongs_to_the_cluster_is_shown),
        case("storage_shows_own_volumes", Welcome, scope::storage_shows_own_volumes),
        case("nodes_have_their_leases_and_events", Welcome, scope::nodes_have_their_leases_and_events),
        case("every_cluster_has_the_service", Welcome, scope::every_cluster_has_the_service_kubernetes),
        case("the_service_kubernetes_has_endpoints", Welcome, scope::the_service_kubernetes_has_endpoints),
        case("quiet_watches_learn_the_version", Welcome, scope::quiet_watches_learn_the_version),
        case("namespaces_get_names", Welcome, scope::namespaces_get_names),
        case("rules_name_namespaces", Welcome, scope::rules_name_namespaces),
        own("host_tokens_are_told_apart", host_tokens::are_told_apart_where_they_are_taken),
        case("host_tokens_are_refused", Welcome, host_tokens::are_refused),
        case("credentials_are_bound_to_own_nodes", Welcome, credentials::are_bound_to_own_nodes),
        case("credentials_end_at_their_cluster", Welcome, credentials::end_at_their_cluster),
        case("errors_heads_have_no_body", Welcome, errors::heads_have_no_body),
        case("errors_bodies_are_read_as_go_reads_them", Welcome, errors::bodies_are_read_as_go_reads_them),
        case("errors_names_of_namespaces_are_labels", Welcome, errors::names_of_namespaces_are_labels),
        case("errors_of_patches_are_equal", Welcome, errors::patches_fail_alike),
        case("errors_of_parameters_are_equal", Welcome, errors::parameters_are_judged_alike),
        case("errors_too_large_a_body_is_answered", Welcome, errors::too_large_a_body_is_answered),
        case("errors_what_is_not_acceptable", Welcome, errors::what_is_not_acceptable),
        case("a_missing_name_hides_no_other", Welcome, errors::a_missing_name_hides_no_other),
        case("an_ending_namespace_is_read_to_its_end", Welcome, rights::an_ending_namespace_is_read_to_its_end),
        case("a_stuck_namespace_counts_its_own", Welcome, errors::a_stuck_namespace_counts_what_is_the_clients),
        case("errors_of_the_agent_have_the_same_form", Welcome, errors::its_own_refusals_look_like_an_api_servers),
        case("bad_requests_change_nothing", Unwelcome, hostile::change_nothing),
        case("a_namespace_stays_what_it_is", Welcome, escape::a_namespace_stays_what_it_is),
        case("a_refused_delete_deletes_nothing", Welcome, escape::a_delete_that_is_refused_deletes_nothing),
        case("cluster_scoped_custom_objects_go_to_all", Welcome, custom::the_same_goes_to_all),
        case("cluster_scoped_custom_objects_own", Welcome, custom::owns_what_it_has),
        case("cluster_scoped_custom_objects_keep_names", Welcome, custom::keeps_its_name),
        case("cluster_scoped_custom_objects_are_watched", Welcome, custom::is_watched),
        case("node_ports_are_shown_as_asked", Welcome, node_ports::are_shown_as_asked),
        case("node_ports_of_its_own_are_taken", Welcome, node_ports::of_its_own_are_taken),
        case("node_ports_of_every_sort", Welcome, node_ports::of_every_sort),
        case("patches_cost_the_agent_little", Unwelcome, patches::cost_the_agent_little),
        case("yaml_is_parsed_like_on_the_host", Welcome, yaml::is_read_as_by_the_host),
        case("namespaces_are_created_by_an_apply", Welcome, namespaces::an_apply_creates_it),
        case("namespaces_keep_the_operators_keys", Welcome, namespaces::operators_keys_stay),
        case("a_node_selector_of_a_namespace_is_parked", Welcome, node_selector::a_node_selector_is_parked),
        case("a_node_selector_of_a_namespace_keeps_its_owner", Welcome, node_selector::a_node_selector_keeps_its_owner),
        case("pod_security_labels_are_kept", Welcome, pod_security::labels_are_the_clients),
        case("bounds_groups_of_a_review_are_few", Welcome, bounds::groups_of_a_review_are_few),
        case("bounds_requirements_of_a_selector", Welcome, bounds::requirements_of_a_selector_are_few),
        case("bounds_a_refusal_names_few_rules", Welcome, bounds::a_refusal_names_few_rules),
        case("bounds_what_a_role_grants", Welcome, bounds::what_a_role_grants_is_bounded),
        case("bounds_what_a_role_grants_directly", Welcome, bounds::what_a_role_grants_directly),
        case("bounds_subjects_of_a_binding", Welcome, bounds::subjects_of_a_binding_are_bounded),
        case("bounds_aggregation_is_fast", Welcome, bounds::aggregation_delays_nobody),
        case("bounds_no_directive_hides_a_role", Welcome, bounds::no_directive_hides_a_role),
        case("names_at_the_limit_work", Welcome, limits::names_at_the_limit_work),
        case("bodies_are_read_after_authorization", Welcome, order::bodies_are_read_after_authorization),
        case("the_host_gets_requests_after_authorization", Welcome, order::the_host_gets_requests_after_authorization),
        case("targets_at_the_limit_are_answered", Welcome, limits::targets_at_the_limit_are_answered),
        case("clients_by_proxy", Welcome, clients::by_proxy),
        case("clients_by_path", Welcome, clients::by_path),
        case("proxied_requests_are_unchanged", Welcome, proxied::servers_get_what_is_meant_for_them),
        case("streams_by_proxy", Welcome, streams::by_proxy),
        case("streams_by_path", Welcome, streams::by_path),
        case("streams_by_sni", Welcome, streams::by_sni),
        case("dry_runs_of_deletes_change_no_rights", Welcome, dry_run::of_a_delete_changes_no_rights),
        case("dry_runs_make_and_end_nothing", Welcome, dry_run::makes_and_ends_nothing),
        case("endpoints_are_one_cluster", Welcome, endpoints::are_one_cluster),
        case("hidden_fields_stay_hidden", Welcome, endpoints::hidden_fields_stay_hidden),
    ];
    trials.extend(affinity::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials.extend(overlays::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials.extend(definitions::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials.extend(revisions::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials.extend(revoked::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials.extend(operators::TRIALS.map(|(name, run)| case(name, Welcome, run)));
    trials
}

// === impl World ===

impl World {
    fn run(&self, company: Company, run: fn(&VirtualSite) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let site = self.site.get_or_init(|| VirtualSite::start(&CLUSTERS));
        let site = site.as_ref().map_err(|error| anyhow!("the site did not start: {error:?}"))?;
        // A failed test poisons the lock. It protects no data, so ignore this.
        let _reading;
        let _writing;
        match company {
            Company::Welcome => _reading = self.quiet.read().unwrap_or_else(PoisonError::into_inner),
            Company::Unwelcome => _writing = self.quiet.write().unwrap_or_else(PoisonError::into_inner),
        }
        run(site)
    }
}

/// The manifest of a namespace.
fn namespace(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#)
}
