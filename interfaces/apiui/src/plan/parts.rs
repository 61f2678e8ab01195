//! Which endpoints of a group list, show, make, edit and delete its items.
//!
//! Owns the choice; where an endpoint belongs is in `grouping`, and whether its name agrees in `agreeing`.

use super::agreeing;
use super::lists::{self, answers_list};
use super::models::{Models, success};
use super::paths::{Placed, Scope, is_parameter, is_version, segments, version};
use super::rpc::{self, Action};
use crate::spec::{Endpoint, Model};

/// Finds the operations of a group that play a part.
pub(super) struct Roles<'a, 's> {
    pub endpoints: &'s [Endpoint],
    pub models: &'a Models<'s>,
    pub all: &'a [Placed],
    pub key: &'a str,
    /// How many parts all paths begin with.
    pub prefix: usize,
}

impl<'s> Roles<'_, 's> {
    /// The operation that shows an item of a path: rather one item than a list of some.
    fn shown(&self) -> Option<usize> {
        let is_one = |endpoint: &Endpoint| !answers_list(endpoint, self.models);
        self.find(Scope::Item, "GET", &is_one, true)
            .or_else(|| self.find(Scope::Item, "GET", &|_: &Endpoint| true, true))
    }

    pub(super) fn detail(&self) -> Option<usize> {
        self.shown()
            .or_else(|| self.action(Scope::ItemAction, &["GET"], Action::Get))
            .or_else(|| self.action(Scope::Loose, &["GET"], Action::Get))
    }

    pub(super) fn create(&self) -> Option<usize> {
        self.find(Scope::Collection, "POST", &agreeing::makes_item, true)
            .or_else(|| self.action(Scope::CollectionAction, &["POST", "PUT"], Action::Create))
            .or_else(|| self.action(Scope::Loose, &["POST", "PUT"], Action::Create))
    }

    /// What edits an item has the path that shows it, or its key in the body.
    pub(super) fn edit(&self, listed: Option<&'s Model>) -> Option<usize> {
        let shown = self.shown();
        let is_item = |endpoint: &Endpoint| self.is_item(endpoint, shown);
        let find = |scope, method, accept| self.find(scope, method, accept, true);
        let changes = |endpoint: &Endpoint| is_item(endpoint) && agreeing::changes_item(endpoint, false);
        let says_so = |endpoint: &Endpoint| {
            let is_alike = || agreeing::is_nameless(endpoint) && self.sends_fields(endpoint, shown);
            is_item(endpoint)
                && !endpoint.bodies.is_empty()
                && (agreeing::changes_item(endpoint, true) || is_alike())
        };
        let keyed = |endpoint: &Endpoint| self.key_in_body(endpoint, listed).is_some();
        find(Scope::Item, "PATCH", &changes)
            .or_else(|| find(Scope::Item, "PUT", &changes))
            .or_else(|| find(Scope::Collection, "PUT", &keyed))
            .or_else(|| find(Scope::Item, "POST", &says_so))
            .or_else(|| self.action(Scope::ItemAction, &["POST", "PUT", "PATCH"], Action::Edit))
    }

    /// The field of the edit's body that names the item, where its path does not.
    pub(super) fn body_key(&self, edit: Option<usize>, listed: Option<&'s Model>) -> Option<String> {
        let index = edit.filter(|index| self.scope(*index) == Some(Scope::Collection))?;
        self.key_in_body(&self.endpoints[index], listed)
    }

    pub(super) fn delete(&self) -> Option<usize> {
        let shown = self.shown();
        let takes = |endpoint: &Endpoint| self.is_item(endpoint, shown) && agreeing::takes_item(endpoint);
        self.find(Scope::Item, "DELETE", &takes, true)
            .or_else(|| self.action(Scope::ItemAction, &["POST", "DELETE"], Action::Delete))
    }

    fn is_item(&self, endpoint: &Endpoint, shown: Option<usize>) -> bool {
        shown.is_none_or(|index| agreeing::is_same_item(&self.endpoints[index].path, &endpoint.path))
    }

    fn scope(&self, index: usize) -> Option<Scope> {
        self.all.iter().find(|placed| placed.index == index).map(|placed| placed.scope)
    }

    /// The items of a list.
    pub(super) fn listed(&self, index: usize) -> Option<&'s Model> {
        let answer = success(&self.endpoints[index])?.schema.as_ref()?;
        lists::find(self.models, answer, lists::Eager::Yes).map(|found| found.item)
    }

    fn key_in_body(&self, endpoint: &Endpoint, item: Option<&'s Model>) -> Option<String> {
        let index = self.endpoints.iter().position(|one| std::ptr::eq(one, endpoint))?;
        agreeing::key_in_body(self.models, &self.endpoints[index], item)
    }

    /// Whether the body has fields that the item has, by the operation that shows it.
    fn sends_fields(&self, endpoint: &Endpoint, shown: Option<usize>) -> bool {
        let Some(index) = self.endpoints.iter().position(|one| std::ptr::eq(one, endpoint)) else {
            return false;
        };
        let answer = shown.and_then(|shown| success(&self.endpoints[shown])?.schema.as_ref());
        let fields = |model: &'s Model| self.models.object(model).map(|object| &object.properties);
        let (sent, held) = (self.endpoints[index].bodies.first(), answer.and_then(fields));
        let Some((sent, held)) = sent.and_then(|body| fields(&body.model)).zip(held) else { return false };
        sent.keys().filter(|name| held.contains_key(*name)).count() > 1
    }

    /// What the group is about, in the singular and lower case.
    fn thing(&self) -> String {
        let key = self.key.split('#').next().unwrap_or_default();
        let name = key.split_once(':').map_or(key, |(_, name)| name);
        let last = name.rsplit('/').find(|part| !part.contains('{')).unwrap_or_default();
        rpc::named(last)
    }

    /// The simplest operation of a scope and method; a deprecated one only where that is allowed.
    fn find(
        &self,
        scope: Scope,
        method: &str,
        accept: &dyn Fn(&Endpoint) -> bool,
        with_deprecated: bool,
    ) -> Option<usize> {
        let fits = |index: &usize| {
            let endpoint = &self.endpoints[*index];
            endpoint.method == method && accept(endpoint) && (with_deprecated || !endpoint.deprecated)
        };
        let scoped = self.all.iter().filter(|placed| placed.scope == scope).map(|placed| placed.index);
        scoped.filter(fits).min_by_key(|index| {
            let endpoint = &self.endpoints[*index];
            let required = endpoint.parameters.iter().filter(|parameter| parameter.required).count();
            (endpoint.deprecated, std::cmp::Reverse(version(&endpoint.path)), required)
        })
    }

    pub(super) fn list(&self) -> Option<usize> {
        let is_list = |endpoint: &Endpoint| answers_list(endpoint, self.models);
        let is_eager_list = |endpoint: &Endpoint| {
            let answer = success(endpoint).and_then(|response| response.schema.as_ref());
            answer.is_some_and(|answer| lists::find(self.models, answer, lists::Eager::Yes).is_some())
        };
        // `users.list` says that it is one, whatever surrounds its items.
        let is_named_list = |endpoint: &Endpoint| {
            let action = rpc::subject(endpoint, &segments(&endpoint.path)).map(|(_, action)| action);
            action == Some(Action::List) && is_eager_list(endpoint)
        };
        [false, true].into_iter().find_map(|with_deprecated| {
            self.find(Scope::Collection, "GET", &is_list, with_deprecated)
                .or_else(|| self.find(Scope::Collection, "GET", &is_eager_list, with_deprecated))
                .or_else(|| self.find(Scope::CollectionAction, "GET", &is_list, with_deprecated))
                .or_else(|| self.find(Scope::Loose, "GET", &is_list, with_deprecated))
                .or_else(|| self.find(Scope::Loose, "GET", &is_named_list, with_deprecated))
        })
    }

    /// An operation whose path or name ends with a word for this, and with nothing between that and the thing.
    fn action(&self, scope: Scope, methods: &[&str], wanted: Action) -> Option<usize> {
        let depth = segments(self.key).len();
        let thing = self.thing();
        let named = |endpoint: &Endpoint| {
            let path = segments(&endpoint.path);
            if scope == Scope::Loose {
                let found = rpc::subject(endpoint, path.get(self.prefix..).unwrap_or(&path));
                return found.is_some_and(|(about, action)| action == wanted && about == thing);
            }
            let plain: Vec<&&str> = path.iter().filter(|segment| !is_version(segment)).collect();
            let Some((last, rest)) = plain.split_last() else { return false };
            // Below an item there must be nothing else: `/{id}/json`, not `/{id}/files/{name}/json`.
            let between = rest.get(depth..).unwrap_or_default();
            let is_direct = between.iter().all(|segment| is_parameter(segment))
                && between.is_empty() == (scope == Scope::CollectionAction);
            is_direct && rpc::action(last) == Some(wanted)
        };
        methods.iter().find_map(|method| self.find(scope, method, &named, true))
    }
}
