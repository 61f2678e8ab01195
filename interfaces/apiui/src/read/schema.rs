//! JSON Schema as OpenAPI and Swagger use it → `Model`.
//!
//! Owns references between schemas, composition (`allOf`, `oneOf`, `anyOf`), and the names of models. Knows no
//! paths or operations. Invariant: each target of a reference becomes one named model, and work is bounded by
//! `MAX_STEPS` however schemas refer to each other.

use super::facets::{
    annotate, enumeration, enumeration_labels, has_substance, has_substance_beside_all_of,
    has_substance_beside_reference, inferred, is_file, limits, types_of,
};
use super::refs::{Dangling, Documents, Spot, escape_segment, last_segment};
use super::value::{entries, list, text, text_of, texts};
use crate::problem::{Problem, ProblemKind, ProblemLocation, excerpt};
use crate::spec::{Discriminator, Kind, Model};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

/// Schema nodes that are visited in one specification before reading stops going deeper.
const MAX_STEPS: usize = 6_000_000;
const MAX_DEPTH: usize = 48;

/// Where the conversion is, for messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail<'d> {
    pub file: usize,
    segments: Vec<Cow<'d, str>>,
}

/// Where a reference leads at last.
#[derive(Debug, Clone)]
enum End<'d> {
    At(Spot<'d>),
    Nowhere(Dangling),
    Itself,
}

pub(super) struct Schemas<'d> {
    pub documents: &'d Documents<'d>,
    pub trail: Trail<'d>,
    pub problems: Vec<Problem>,
    /// How many references led nowhere so far.
    pub broken: usize,
    names: HashMap<(usize, String), String>,
    taken: HashSet<String>,
    /// How often a name was wanted, so that the next number is known.
    counts: HashMap<String, usize>,
    /// Where references end, by the file they are in and their text: each is followed once.
    ends: HashMap<(usize, String), End<'d>>,
    queue: VecDeque<Spot<'d>>,
    /// Base of a discriminator → the schemas that extend it with `allOf`.
    heirs: HashMap<String, Vec<(&'d str, Spot<'d>)>>,
    models: Vec<Model>,
    steps: usize,
}

impl<'d> Trail<'d> {
    pub(super) fn push(&mut self, segment: impl Into<Cow<'d, str>>) {
        self.segments.push(segment.into());
    }

    pub(super) fn pop(&mut self) {
        self.segments.pop();
    }

    fn at(spot: &Spot<'d>) -> Self {
        let segments = spot.pointer.split('/').skip(1).map(|part| Cow::Owned(last_segment(part))).collect();
        Self { file: spot.file, segments }
    }
}

impl<'d> Schemas<'d> {
    pub(super) fn new(documents: &'d Documents<'d>) -> Self {
        Self {
            documents,
            trail: Trail::default(),
            problems: Vec::new(),
            broken: 0,
            names: HashMap::new(),
            taken: HashSet::new(),
            counts: HashMap::new(),
            ends: HashMap::new(),
            queue: VecDeque::new(),
            heirs: HashMap::new(),
            models: Vec::new(),
            steps: 0,
        }
    }

    /// Gives every schema under `pointer` its own name, in the order of the document.
    pub(super) fn register(&mut self, pointer: &str) {
        let Some(schemas) = self.documents.root().pointer(pointer).and_then(Value::as_object) else { return };
        for (name, value) in schemas {
            let pointer = format!("{pointer}/{}", escape_segment(name));
            let bases =
                list(value, "allOf").iter().filter_map(|part| part.get("$ref")?.as_str()?.strip_prefix('#'));
            for base in bases {
                let heir = (name.as_str(), Spot { file: 0, pointer: pointer.clone(), value });
                self.heirs.entry(base.to_owned()).or_default().push(heir);
            }
            self.name_of(Spot { file: 0, pointer, value });
        }
    }

    /// Converts what is still queued and gives the named models.
    pub(super) fn finish(mut self) -> (Vec<Model>, Vec<Problem>) {
        while let Some(spot) = self.queue.pop_front() {
            self.trail = Trail::at(&spot);
            let mut model = self.schema(spot.value, 0);
            model.name = self.names.get(&(spot.file, spot.pointer)).cloned().unwrap_or_default();
            self.models.push(model);
        }
        self.models.shrink_to_fit();
        (self.models, self.problems)
    }

    pub(super) fn place(&self) -> ProblemLocation {
        let mut pointer = String::new();
        for segment in &self.trail.segments {
            pointer.push('/');
            pointer.push_str(&escape_segment(segment));
        }
        ProblemLocation::Pointer { pointer, file: self.documents.file_name(self.trail.file) }
    }

    /// Converts one schema at the trail's place.
    pub(super) fn schema(&mut self, value: &'d Value, depth: usize) -> Model {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS || !value.is_object() {
            return Model::default();
        }
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            if has_substance_beside_reference(value) {
                return self.merged(value, depth);
            }
            return annotate(self.reference(reference), value);
        }
        if let [only] = list(value, "allOf")
            && !has_substance_beside_all_of(value)
        {
            return annotate(self.within(["allOf", "0"], |this| this.schema(only, depth + 1)), value);
        }
        if !list(value, "allOf").is_empty() {
            return self.merged(value, depth);
        }
        self.plain(value, depth)
    }

    /// Follows a reference through aliases to something that is not one. Counts and reports failures.
    pub(super) fn follow(&mut self, reference: &str) -> Option<Spot<'d>> {
        let problem = match self.end_of(reference) {
            End::At(spot) => return Some(spot),
            End::Nowhere(dangling) => dangling.problem(self.place()),
            End::Itself => cycle(self.place(), reference),
        };
        self.broken += 1;
        self.problems.push(problem);
        None
    }

    /// The end of a reference. What lies on the way has the same end, so that a chain is walked once in all.
    fn end_of(&mut self, reference: &str) -> End<'d> {
        let mut next = (self.trail.file, reference.to_owned());
        let mut passed = HashSet::new();
        let end = loop {
            if let Some(end) = self.ends.get(&next) {
                break end.clone();
            }
            if !passed.insert(next.clone()) {
                break End::Itself;
            }
            let spot = match self.documents.resolve(next.0, &next.1) {
                Ok(spot) => spot,
                Err(dangling) => break End::Nowhere(dangling),
            };
            match spot.value.get("$ref").and_then(Value::as_str) {
                Some(further) if !has_substance_beside_reference(spot.value) => {
                    next = (spot.file, further.to_owned());
                }
                _ => break End::At(spot),
            }
        };
        self.ends.extend(passed.into_iter().map(|one| (one, end.clone())));
        end
    }

    /// Runs `work` with the trail at another place.
    pub(super) fn elsewhere<T>(&mut self, spot: &Spot<'d>, work: impl FnOnce(&mut Self) -> T) -> T {
        let here = std::mem::replace(&mut self.trail, Trail::at(spot));
        let result = work(self);
        self.trail = here;
        result
    }

    /// Runs `work` with the trail some segments deeper.
    pub(super) fn within<T, S: Into<Cow<'d, str>>, const N: usize>(
        &mut self,
        segments: [S; N],
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        segments.into_iter().for_each(|segment| self.trail.push(segment));
        let result = work(self);
        (0..N).for_each(|_| self.trail.pop());
        result
    }

    fn reference(&mut self, reference: &str) -> Model {
        match self.follow(reference) {
            Some(spot) => Model::reference_to(self.name_of(spot)),
            None => Model::default(),
        }
    }

    fn name_of(&mut self, spot: Spot<'d>) -> String {
        let key = (spot.file, spot.pointer.clone());
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let mut base = last_segment(&spot.pointer);
        if base.is_empty() {
            let file = self.documents.file_name(spot.file).unwrap_or_else(|| "Root".to_owned());
            base = last_segment(&file).split('.').next().unwrap_or_default().to_owned();
        }
        let mut name = base.clone();
        let number = self.counts.entry(base.clone()).or_insert(1);
        while !self.taken.insert(name.clone()) {
            *number += 1;
            name = format!("{base}_{number}");
        }
        self.names.insert(key, name.clone());
        self.queue.push_back(spot);
        name
    }

    /// A schema made of several: `allOf`, or a reference with more beside it.
    fn merged(&mut self, value: &'d Value, depth: usize) -> Model {
        let mut model = Model::default();
        self.absorb(&mut model, value, depth, &mut HashSet::new());
        model.discriminator = self.discriminator(value);
        annotate(model, value)
    }

    fn absorb(
        &mut self,
        into: &mut Model,
        value: &'d Value,
        depth: usize,
        seen: &mut HashSet<(usize, String)>,
    ) {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return;
        }
        if let Some(reference) = value.get("$ref").and_then(Value::as_str)
            && let Some(spot) = self.follow(reference)
            && seen.insert((spot.file, spot.pointer.clone()))
        {
            self.elsewhere(&spot, |this| this.absorb(into, spot.value, depth + 1, seen));
        }
        for (index, part) in list(value, "allOf").iter().enumerate() {
            self.within(["allOf".to_owned(), index.to_string()], |this| {
                this.absorb(into, part, depth + 1, seen)
            });
        }
        let own = self.undivided(value, depth);
        combine(into, annotate(own, value));
    }

    /// A schema without regard to `$ref` and `allOf`.
    fn plain(&mut self, value: &'d Value, depth: usize) -> Model {
        let mut model = self.undivided(value, depth);
        if model.kind == Kind::Object || !list(value, "oneOf").is_empty() || !list(value, "anyOf").is_empty()
        {
            model.discriminator = self.discriminator(value);
        }
        annotate(model, value)
    }

    /// The same without what tells its variants apart.
    fn undivided(&mut self, value: &'d Value, depth: usize) -> Model {
        let mut model = self.by_type(value, depth);
        let variants = self.variants(value, depth);
        if !variants.is_empty() {
            self.unite(&mut model, variants);
        }
        model
    }

    fn by_type(&mut self, value: &'d Value, depth: usize) -> Model {
        let (kinds, nullable) = types_of(value);
        let mut model = match kinds.as_slice() {
            [] => Model::of(inferred(value)),
            [one] => Model::of(*one),
            many => {
                let mut model = Model::of(Kind::Union);
                model.union_of = many.iter().map(|kind| self.fill(Model::of(*kind), value, depth)).collect();
                model.nullable = nullable;
                return model;
            }
        };
        model.nullable = nullable;
        self.fill(model, value, depth)
    }

    /// Adds what belongs to the kind of the model.
    fn fill(&mut self, mut model: Model, value: &'d Value, depth: usize) -> Model {
        model.format = text(value, "format");
        if let Some((values, null)) = enumeration(value)
            && !matches!(model.kind, Kind::Array | Kind::Object)
        {
            model.kind = if values.is_empty() { Kind::Null } else { Kind::Enum };
            model.enum_values = values;
            model.enum_labels = enumeration_labels(value);
            model.nullable |= null;
            return model;
        }
        match model.kind {
            Kind::Object => self.object(&mut model, value, depth),
            Kind::Array => {
                let items = value.get("items").or_else(|| list(value, "prefixItems").first());
                let item = items.map(|items| self.within(["items"], |this| this.schema(items, depth + 1)));
                model.items = Some(Box::new(item.unwrap_or_default()));
            }
            Kind::String if is_file(value) => model.kind = Kind::File,
            _ => {}
        }
        model.limits = limits(value);
        model
    }

    fn object(&mut self, model: &mut Model, value: &'d Value, depth: usize) {
        let properties = entries(value, "properties");
        model.properties.reserve_exact(properties.map_or(0, serde_json::Map::len));
        for (name, property) in properties.into_iter().flatten() {
            let property =
                self.within(["properties", name.as_str()], |this| this.schema(property, depth + 1));
            model.properties.insert(name.clone(), property);
        }
        model.required = texts(value, "required");
        let pattern = entries(value, "patternProperties").and_then(|patterns| patterns.values().next());
        model.values = match value.get("additionalProperties").or(pattern) {
            Some(Value::Bool(true)) => Some(Box::default()),
            Some(schema @ Value::Object(_)) => {
                Some(Box::new(self.within(["additionalProperties"], |this| this.schema(schema, depth + 1))))
            }
            _ => None,
        };
    }

    fn variants(&mut self, value: &'d Value, depth: usize) -> Vec<Model> {
        let mut variants = Vec::new();
        for key in ["oneOf", "anyOf"] {
            for (index, variant) in list(value, key).iter().enumerate() {
                if has_substance(variant) {
                    let segments = [key.to_owned(), index.to_string()];
                    variants.push(self.within(segments, |this| this.schema(variant, depth + 1)));
                }
            }
        }
        variants
    }

    fn unite(&mut self, model: &mut Model, mut variants: Vec<Model>) {
        let count = variants.len();
        variants.retain(|variant| variant.kind != Kind::Null);
        model.nullable |= variants.len() < count;
        if variants.len() > 1 && variants.iter().all(|variant| variant.kind == Kind::Enum) {
            model.kind = Kind::Enum;
            // `oneOf` of constants with titles is an enumeration with labels.
            let is_labeled =
                |variant: &Model| variant.enum_values.len() == 1 && variant.description.is_some();
            let are_labeled = variants.iter().all(is_labeled);
            for variant in variants {
                for value in variant.enum_values {
                    if model.enum_values.contains(&value) {
                        continue;
                    }
                    model.enum_values.push(value);
                    if are_labeled {
                        model.enum_labels.extend(variant.description.clone());
                    }
                }
            }
            return;
        }
        let bare = model.properties.is_empty() && model.enum_values.is_empty();
        if bare && variants.len() == 1 {
            let nullable = model.nullable;
            if let Some(only) = variants.pop() {
                *model = only;
            }
            model.nullable |= nullable;
        } else if bare && !variants.is_empty() {
            model.kind = Kind::Union;
            model.union_of = variants;
        } else if model.kind == Kind::Object {
            model.union_of = variants;
        }
    }

    fn discriminator(&mut self, value: &'d Value) -> Option<Box<Discriminator>> {
        let given = value.get("discriminator")?;
        // Swagger 2.0 has only the name of the property.
        let property = text_of(given).or_else(|| text(given, "propertyName"))?;
        let mut discriminator = Discriminator { property, ..Discriminator::default() };
        for (label, target) in entries(given, "mapping").into_iter().flatten() {
            let Some(target) = target.as_str() else { continue };
            let reference = if target.contains(['#', '/', '.']) {
                target.to_owned()
            } else {
                format!("#/components/schemas/{}", escape_segment(target))
            };
            let found =
                self.within(["discriminator", "mapping", label.as_str()], |this| this.follow(&reference));
            if let Some(spot) = found {
                let name = self.name_of(spot);
                discriminator.mapping.insert(label.clone(), name);
            }
        }
        if discriminator.mapping.is_empty()
            && list(value, "oneOf").is_empty()
            && list(value, "anyOf").is_empty()
        {
            let ProblemLocation::Pointer { pointer, file: None } = self.place() else {
                return Some(Box::new(discriminator));
            };
            for (label, spot) in self.heirs.get(&pointer).cloned().unwrap_or_default() {
                let name = self.name_of(spot);
                discriminator.mapping.insert(label.to_owned(), name);
            }
        }
        Some(Box::new(discriminator))
    }
}

/// Adds the second model to the first, as `allOf` asks.
fn combine(into: &mut Model, other: Model) {
    if into.kind == Kind::Any || (into.kind == Kind::Object && other.kind == Kind::Enum) {
        into.kind = other.kind;
    }
    into.properties.extend(other.properties);
    for name in other.required {
        if !into.required.contains(&name) {
            into.required.push(name);
        }
    }
    if !other.union_of.is_empty() {
        into.union_of.extend(other.union_of);
        if into.properties.is_empty() && into.kind == Kind::Any {
            into.kind = Kind::Union;
        }
    }
    if !other.enum_values.is_empty() {
        into.enum_values = other.enum_values;
        into.enum_labels = other.enum_labels;
    }
    into.items = other.items.or(into.items.take());
    into.values = other.values.or(into.values.take());
    into.limits = other.limits.or(into.limits.take());
    into.format = other.format.or(into.format.take());
    into.description = other.description.or(into.description.take());
    into.reference = other.reference.or(into.reference.take());
    into.nullable |= other.nullable;
}

fn cycle(place: ProblemLocation, reference: &str) -> Problem {
    Problem::warning(
        ProblemKind::CyclicReference,
        place,
        format!(
            "`{}` is a reference that only leads back to itself, so it has no shape.",
            excerpt(reference)
        ),
        "Let one schema of the circle say what the value is (`type`, `properties` …).",
    )
}
