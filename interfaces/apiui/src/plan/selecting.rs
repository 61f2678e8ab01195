//! Which arguments of a GraphQL operation say which rows it is about.
//!
//! Owns the difference between a key, which names one row, and a filter, which may mean all of them. Invariant: a key is a
//! plain value that a field of the item fills, proven by its name in the schema; a filter is never one.

use super::models::Models;
use super::roles;
use super::words::{singular, split, squeezed};
use crate::spec::{GraphOperation, Kind, Model, Parameter};

/// Arguments that choose rows.
const CHOOSERS: [&str; 11] = [
    "where",
    "by",
    "key",
    "pkcolumns",
    "selector",
    "identifier",
    "identity",
    "unique",
    "lookup",
    "filter",
    "filters",
];
const FILTERS: [&str; 6] = ["where", "filter", "filters", "criteria", "condition", "having"];
/// Words in the names of arguments that hold all that an operation needs, and of what is a key in more than one word.
const WRAPPERS: [&str; 24] = [
    "input",
    "data",
    "payload",
    "args",
    "arg",
    "arguments",
    "params",
    "parameters",
    "request",
    "req",
    "body",
    "attributes",
    "object",
    "record",
    "dto",
    "model",
    "entity",
    "item",
    "form",
    "details",
    "options",
    "command",
    "pk",
    "columns",
];
/// Objects that hold new values: an id in them is a new id.
const CHANGES: [&str; 9] =
    ["set", "patch", "changes", "change", "values", "update", "inc", "append", "create"];
/// Names of the one field that every item is known by.
const IDS: [&str; 7] = ["id", "uuid", "guid", "nodeid", "documentid", "pk", "objectid"];
/// What else can be the key of an item that is deleted by it.
const NAMES: [&str; 7] = ["slug", "key", "code", "login", "username", "name", "number"];

/// The item that an operation is about.
pub(super) struct Item<'s> {
    /// Its name in lower case and in one word.
    pub own: String,
    /// Where its key is.
    pub model: &'s Model,
    /// Where its other fields are.
    pub record: &'s Model,
}

/// What an operation may be told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The operation is about this very thing: an argument `id` is its id.
    Exact,
    /// It deletes this very thing: a name that it asks for is that of the thing.
    Deletion,
    /// It is about something near: an argument must carry the name of the thing.
    Named,
}

/// A plain argument, or a field of an object argument, and the field of the item that fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    pub path: Vec<String>,
    pub field: String,
}

/// A plain value that an operation can be given.
struct Plain<'s> {
    name: &'s str,
    is_required: bool,
}

/// The keys of an operation: empty where it has none, or may be about more than one item.
pub(super) fn keys<'s>(
    models: &Models<'s>,
    operation: &'s GraphOperation,
    item: &Item<'s>,
    trust: Trust,
    goes_by: bool,
) -> Vec<Selected> {
    if operation.args.iter().any(|arg| is_many(models, arg, item)) {
        return Vec::new();
    }
    let direct: Vec<Plain> = operation
        .args
        .iter()
        .filter(|arg| arg.schema.as_ref().is_some_and(|schema| is_plain(models, schema)))
        .map(|arg| Plain { name: &arg.name, is_required: arg.required })
        .collect();
    let found = choose(models, &direct, item, trust, goes_by);
    if !found.is_empty() {
        return at(&[], found);
    }
    let objects: Vec<(&str, &'s Model, &'s Model)> = operation
        .args
        .iter()
        .filter_map(|arg| {
            let schema = arg.schema.as_ref()?;
            let target = models.resolve(schema);
            (!target.properties.is_empty()).then_some((arg.name.as_str(), schema, target))
        })
        .collect();
    in_choosers(models, &objects, item, trust)
        .unwrap_or_else(|| in_inputs(models, &objects, item, trust, goes_by))
}

/// `where: {id}`, `pk_columns: {id}`, `input: {where: {id}}`.
fn in_choosers<'s>(
    models: &Models<'s>,
    objects: &[(&str, &'s Model, &'s Model)],
    item: &Item<'s>,
    trust: Trust,
) -> Option<Vec<Selected>> {
    let fits = |name: &str, schema: &'s Model, target: &'s Model| {
        is_chooser(models, name, schema, target) && is_own(models, name, schema, item)
    };
    let found = |path: &[&str], target: &'s Model, goes_by: bool| {
        let found = choose(models, &plain_fields(models, target), item, trust, goes_by);
        (!found.is_empty()).then(|| at(path, found))
    };
    let outer = objects.iter().filter(|(name, schema, target)| fits(name, schema, target));
    let mut outer =
        outer.filter_map(|(name, _, target)| found(&[name], target, name.to_lowercase().contains("pk")));
    outer.next().or_else(|| {
        let groups =
            objects.iter().filter(|(name, schema, _)| !is_change(name) && is_own(models, name, schema, item));
        let mut inner = groups.flat_map(|(name, _, target)| {
            target.properties.iter().map(move |(inner, property)| (*name, inner.as_str(), property))
        });
        inner.find_map(|(name, inner, property)| {
            let fields = models.resolve(property);
            let is_one = !fields.properties.is_empty() && fits(inner, property, fields);
            found(&[name, inner], fields, false).filter(|_| is_one)
        })
    })
}

/// `input: {id, …}`: not where a filter says which rows are meant, unless the key is required.
fn in_inputs<'s>(
    models: &Models<'s>,
    objects: &[(&str, &'s Model, &'s Model)],
    item: &Item<'s>,
    trust: Trust,
    goes_by: bool,
) -> Vec<Selected> {
    let inner_filter = |target: &'s Model| {
        target.properties.iter().any(|(name, inner)| is_filter(models, name, models.resolve(inner)))
    };
    let has_filter =
        objects.iter().any(|(name, _, target)| is_filter(models, name, target) || inner_filter(target));
    for (name, schema, target) in objects {
        if is_change(name) || is_filter(models, name, target) || !is_own(models, name, schema, item) {
            continue;
        }
        let mut fields = plain_fields(models, target);
        fields.retain(|field| field.is_required || !has_filter);
        let found = choose(models, &fields, item, trust, goes_by);
        if !found.is_empty() {
            return at(&[name], found);
        }
    }
    Vec::new()
}

fn at(prefix: &[&str], found: Vec<(String, String)>) -> Vec<Selected> {
    let path = |name: String| prefix.iter().map(|part| (*part).to_owned()).chain([name]).collect();
    found.into_iter().map(|(name, field)| Selected { path: path(name), field }).collect()
}

/// Those of some plain values that name the item, with the fields that fill them.
fn choose<'s>(
    models: &Models<'s>,
    plain: &[Plain],
    item: &Item<'s>,
    trust: Trust,
    goes_by: bool,
) -> Vec<(String, String)> {
    let field = |wanted: &str| field_named(models, item.model, wanted);
    let exact = trust != Trust::Named;
    let required: Vec<&Plain> = plain.iter().filter(|one| one.is_required).collect();
    // Of the columns of a primary key, each is needed.
    if exact && goes_by && !required.is_empty() {
        let columns: Option<Vec<(String, String)>> = required
            .iter()
            .filter(|one| squeezed(one.name) != "clientmutationid")
            .map(|one| {
                Some((
                    one.name.to_owned(),
                    field(&squeezed(one.name)).or_else(|| own_key(models, item, one.name))?,
                ))
            })
            .collect();
        if let Some(columns) = columns.filter(|columns| !columns.is_empty()) {
            return columns;
        }
    }
    let by_id = || {
        let ids = IDS.iter().find_map(|id| plain.iter().find(|one| squeezed(one.name) == *id));
        let found = ids.filter(|_| exact)?;
        Some((found.name.to_owned(), field(&squeezed(found.name))?))
    };
    let by_own =
        || plain.iter().find_map(|one| Some((one.name.to_owned(), own_key(models, item, one.name)?)));
    let by_short = || {
        let mut ids = plain.iter().filter(|one| is_short(models, &squeezed(one.name), &item.own));
        let found = ids.next().filter(|one| exact && one.is_required)?;
        Some((found.name.to_owned(), field("id").filter(|_| ids.next().is_none())?))
    };
    let by_name = || match required.as_slice() {
        [only] if trust == Trust::Deletion && NAMES.contains(&squeezed(only.name).as_str()) => {
            Some((only.name.to_owned(), field(&squeezed(only.name))?))
        }
        _ => None,
    };
    by_id().or_else(by_own).or_else(by_short).or_else(by_name).into_iter().collect()
}

/// `postId`, `post_slug`, `post`: the name of the thing and what it is known by.
fn own_key(models: &Models, item: &Item, name: &str) -> Option<String> {
    let wanted = squeezed(name);
    let one = singular(&item.own);
    let rest = [item.own.as_str(), one.as_str()].into_iter().find_map(|own| wanted.strip_prefix(own))?;
    let field = |wanted: &str| field_named(models, item.model, wanted);
    match rest {
        "" => field("id").or_else(|| field("uuid")),
        // The `name` of a user is what people call them, not the user name.
        rest if IDS.contains(&rest) || ["number", "slug"].contains(&rest) => {
            field(&wanted).or_else(|| field(rest))
        }
        rest if NAMES.contains(&rest) => field(&wanted),
        _ => None,
    }
}

/// `projectId` for a `ProjectV2`, `cardId` for a `ProjectCard`; not `roleId` for a `UserRole` where there are roles.
fn is_short(models: &Models, wanted: &str, own: &str) -> bool {
    let stem = wanted.strip_suffix("id").filter(|stem| stem.len() > 2 && !models.is_type(stem));
    let is_version =
        |rest: &str| rest.strip_prefix('v').is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    stem.is_some_and(|stem| own.ends_with(stem) || own.strip_prefix(stem).is_some_and(is_version))
}

/// A plain field of the item by its squeezed name.
fn field_named(models: &Models, model: &Model, wanted: &str) -> Option<String> {
    let found = model.properties.iter().find(|(name, _)| squeezed(name) == wanted);
    found.filter(|(_, property)| is_plain_owned(models, property)).map(|(name, _)| name.clone())
}

fn plain_fields<'s>(models: &Models<'s>, model: &'s Model) -> Vec<Plain<'s>> {
    let fields = model.properties.iter().filter(|(_, property)| is_plain(models, property));
    fields.map(|(name, _)| Plain { name, is_required: model.required.contains(name) }).collect()
}

fn is_plain<'s>(models: &Models<'s>, model: &'s Model) -> bool {
    is_plain_owned(models, models.resolve(model))
}

fn is_plain_owned(models: &Models, model: &Model) -> bool {
    let named = model.reference.as_deref().and_then(|name| models.named(name));
    let target = named.unwrap_or(model);
    matches!(target.kind, Kind::String | Kind::Integer | Kind::Number | Kind::Any)
        && target.properties.is_empty()
        && target.union_of.is_empty()
}

/// Whether an argument is for several items: a list of keys, or of objects.
fn is_many<'s>(models: &Models<'s>, arg: &'s Parameter, item: &Item) -> bool {
    let Some(inner) = arg.schema.as_ref().and_then(|schema| models.item(schema)) else { return false };
    let name = squeezed(&arg.name);
    let is_list_of_keys =
        name.ends_with("ids") || name.ends_with("keys") || singular(&name) == item.own && name != item.own;
    arg.required && (is_list_of_keys || !models.resolve(inner).properties.is_empty())
}

/// An object that names one row: made of unique values, or with a key that it requires.
fn is_chooser<'s>(models: &Models<'s>, name: &str, schema: &'s Model, target: &'s Model) -> bool {
    let plain = squeezed(name);
    let kind = models.name(schema).unwrap_or_default().to_lowercase().replace('_', "");
    if kind.contains("unique") || kind.contains("pkcolumns") {
        return true;
    }
    if !CHOOSERS.contains(&plain.as_str()) || has_logic(target) {
        return false;
    }
    let fields = plain_fields(models, target);
    !FILTERS.contains(&plain.as_str())
        || fields.iter().any(|field| field.is_required)
        || plain == "where" && fields.len() == target.properties.len()
}

/// Whether an object argument is about the item: it is called `input`, `where`, `post` or `updatePostInput`, and its type does
/// not carry the name of something else. `author: {id}` of a post names its author.
fn is_own<'s>(models: &Models<'s>, name: &str, schema: &'s Model, item: &Item) -> bool {
    let one = singular(&item.own);
    let is_item = |text: &str| text == item.own || text == one;
    let kind = squeezed(models.name(schema).unwrap_or_default());
    let owner = ["where", "unique", "pkcolumns"].iter().filter_map(|word| kind.find(word)).min();
    let owner = owner.map_or("", |at| &kind[..at]);
    if !is_item(owner) && models.is_type(owner) {
        return false;
    }
    let rest = telling(name);
    rest.is_empty() || is_item(&rest)
}

/// The words in the name of an argument that say what it is about.
fn telling(name: &str) -> String {
    let is_neutral = |word: &String| {
        let word = word.as_str();
        WRAPPERS.contains(&word) || CHOOSERS.contains(&word) || super::rpc::action(word).is_some()
    };
    split(name).iter().map(|word| word.to_lowercase()).filter(|word| !is_neutral(word)).collect()
}

/// An object that may mean every row.
fn is_filter(models: &Models, name: &str, target: &Model) -> bool {
    if target.properties.is_empty() {
        return false;
    }
    let compares = target.properties.values().any(|property| !is_plain_owned(models, property));
    has_logic(target) || FILTERS.contains(&squeezed(name).as_str()) && compares
}

fn has_logic(target: &Model) -> bool {
    target.properties.keys().any(|name| ["and", "or", "not"].contains(&squeezed(name).as_str()))
}

fn is_change(name: &str) -> bool {
    let last = split(name).last().map(|word| word.to_lowercase()).unwrap_or_default();
    CHANGES.contains(&last.as_str())
}

/// The arguments that must not be empty when an operation writes: what chooses the rows, by path.
pub(super) fn guarded<'s>(models: &Models<'s>, operation: &'s GraphOperation) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let changes_rows = roles::changes_rows(&operation.name);
    let is_told = roles::is_change(&operation.name);
    for arg in &operation.args {
        let Some(schema) = &arg.schema else { continue };
        let target = models.resolve(schema);
        let name = squeezed(&arg.name);
        let is_key = is_told && (super::words::is_key(&arg.name) && arg.required || name.ends_with("ids"))
            || changes_rows && ["ids", "uuids", "keys"].contains(&name.as_str());
        let is_choice = chooses(models, &arg.name, schema, arg.required);
        if is_key && target.properties.is_empty()
            || is_choice && (arg.required || changes_rows) && !is_extra(operation, arg)
        {
            paths.push(vec![arg.name.clone()]);
            continue;
        }
        let has_id = target.properties.keys().any(|name| is_id(name)) || names_one(operation);
        for (inner, property) in target.properties.iter().filter(|_| !is_change(&arg.name)) {
            let is_required = target.required.contains(inner);
            let is_text = models.resolve(property).kind == Kind::String;
            let is_choice =
                chooses(models, inner, property, is_required) && (is_required || !has_id && !is_text);
            let is_key = is_told && is_required && super::words::is_key(inner);
            if changes_rows && is_choice || is_key {
                paths.push(vec![arg.name.clone(), inner.clone()]);
            }
        }
    }
    paths
}

/// Whether an argument says which rows are meant: a filter of any type, or an object that names one of them.
fn chooses<'s>(models: &Models<'s>, name: &str, schema: &'s Model, is_required: bool) -> bool {
    let target = models.resolve(schema);
    let is_named = FILTERS.contains(&squeezed(name).as_str());
    if target.properties.is_empty() {
        let is_free = !matches!(target.kind, Kind::Boolean | Kind::Integer | Kind::Number);
        return is_named && is_free && target.enum_values.is_empty();
    }
    // The author of a post may be left out.
    let kind = squeezed(models.name(schema).unwrap_or_default());
    let is_relation = kind.contains("unique") && !is_required && !telling(name).is_empty();
    is_named || !is_relation && (is_chooser(models, name, schema, target) || is_filter(models, name, target))
}

fn is_id(name: &str) -> bool {
    IDS.contains(&squeezed(name).as_str())
}

/// Whether an operation requires the id of the one row that it is about.
fn names_one(operation: &GraphOperation) -> bool {
    operation.args.iter().any(|arg| arg.required && is_id(&arg.name))
}

/// A condition that may be left out comes on top of a key.
fn is_extra(operation: &GraphOperation, arg: &Parameter) -> bool {
    let has_other = || operation.args.iter().any(|other| other.required);
    !arg.required && (names_one(operation) || squeezed(&arg.name) == "condition" && has_other())
}

/// Whether an operation may change many rows at once: such a call asks first.
pub(super) fn is_bulk<'s>(models: &Models<'s>, operation: &'s GraphOperation) -> bool {
    let is_filter = |arg: &'s Parameter| {
        let Some(schema) = &arg.schema else { return false };
        let target = models.resolve(schema);
        chooses(models, &arg.name, schema, arg.required)
            && !is_extra(operation, arg)
            && !is_chooser(models, &arg.name, schema, target)
    };
    let is_inner = |path: &Vec<String>| {
        let [outer, inner] = path.as_slice() else { return false };
        let schema = operation.args.iter().find(|arg| arg.name == *outer).and_then(|arg| arg.schema.as_ref());
        let property = schema.and_then(|schema| models.resolve(schema).properties.get(inner));
        FILTERS.contains(&squeezed(inner).as_str())
            && property.is_some_and(|it| !is_chooser(models, inner, it, models.resolve(it)))
    };
    roles::changes_rows(&operation.name)
        && (roles::says_many(&operation.name)
            || operation.args.iter().any(is_filter)
            || guarded(models, operation).iter().any(is_inner))
}

/// Where the fields of the item are among the arguments of an edit: in the arguments themselves, or in an object.
pub(super) fn record<'s>(models: &Models<'s>, operation: &'s GraphOperation, item: &Item<'s>) -> Vec<String> {
    let has = |name: &String| item.record.properties.contains_key(name);
    let score = |model: &'s Model| {
        model.properties.keys().filter(|name| has(name) && !IDS.contains(&squeezed(name).as_str())).count()
    };
    let mut best = (
        operation
            .args
            .iter()
            .filter(|arg| has(&arg.name) && !IDS.contains(&squeezed(&arg.name).as_str()))
            .count(),
        Vec::new(),
    );
    let mut offer = |count: usize, path: Vec<String>| {
        if count > best.0 {
            best = (count, path);
        }
    };
    for arg in &operation.args {
        let Some(schema) = &arg.schema else { continue };
        let target = models.resolve(schema);
        if target.properties.is_empty()
            || is_chooser(models, &arg.name, schema, target)
            || is_filter(models, &arg.name, target)
        {
            continue;
        }
        offer(score(target), vec![arg.name.clone()]);
        for (inner, property) in &target.properties {
            // A part of the item that is an object itself is no place for the whole of it.
            if !has(inner) && !is_filter(models, inner, models.resolve(property)) {
                offer(score(models.resolve(property)), vec![arg.name.clone(), inner.clone()]);
            }
        }
    }
    best.1
}
