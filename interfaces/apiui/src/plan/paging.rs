//! Detects how a list is paged, from its parameters and its answer.
//!
//! Owns the names that page numbers, offsets, cursors and sizes go by.

use super::lists::Found;
use super::models::Models;
use super::{Input, Operation, Paging, PagingStyle};
use crate::spec::{Model, Response};

const PAGE: [&str; 8] =
    ["page", "pagenumber", "pageno", "pageindex", "pagenum", "p", "currentpage", "pagenr"];
const OFFSET: [&str; 9] =
    ["offset", "skip", "$skip", "start", "startat", "startindex", "from", "first_result", "firstresult"];
const CURSOR: [&str; 16] = [
    "cursor",
    "after",
    "startingafter",
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "marker",
    "continue",
    "continuation",
    "continuationtoken",
    "nextcursor",
    "pagecursor",
    "sinceid",
    "since",
    "token",
    "scrollid",
];
const SIZE: [&str; 19] = [
    "limit",
    "perpage",
    "pagesize",
    "size",
    "pagelimit",
    "count",
    "maxresults",
    "top",
    "$top",
    "first",
    "max",
    "rows",
    "take",
    "resultsperpage",
    "itemsperpage",
    "maxitems",
    "length",
    "num",
    "pagecount",
];
const NEXT: [&str; 14] = [
    "next_cursor",
    "nextcursor",
    "next_page_token",
    "nextpagetoken",
    "nexttoken",
    "next_token",
    "next_marker",
    "nextmarker",
    "cursor",
    "continue",
    "endcursor",
    "next_page",
    "continuationtoken",
    "scroll_id",
];
const NEXT_ADDRESS: [&str; 6] =
    ["next", "next_url", "nexturl", "nextlink", "@odata.nextlink", "next_page_url"];
const MORE: [&str; 6] = ["has_more", "hasmore", "has_next", "hasnext", "hasnextpage", "more"];
const TOTAL: [&str; 14] = [
    "total",
    "total_count",
    "totalcount",
    "count",
    "totalresults",
    "total_results",
    "totalitems",
    "total_items",
    "totalelements",
    "total_elements",
    "size",
    "recordstotal",
    "nbhits",
    "@odata.count",
];

/// The paging of a list, and the path to the total where the answer has one.
pub(super) fn detect(
    models: &Models,
    operation: &Operation,
    found: &Found,
    response: Option<&Response>,
) -> (Option<Paging>, Vec<String>) {
    let total = total(models, found);
    if found.is_connection {
        let size = named(operation, &["first"]).map(|input| input.name.clone()).unwrap_or_default();
        let parameter = named(operation, &["after"]).map(|input| input.name.clone()).unwrap_or_default();
        if parameter.is_empty() {
            return (None, total);
        }
        let path = |name: &str| vec!["pageInfo".to_owned(), name.to_owned()];
        let paging = Paging {
            style: PagingStyle::Connection,
            parameter,
            size_parameter: size,
            next: path("endCursor"),
            more: path("hasNextPage"),
            ..Paging::default()
        };
        return (Some(paging), total);
    }
    let size_parameter = named(operation, &SIZE).map(|input| input.name.clone()).unwrap_or_default();
    let paging = by_parameter(models, operation, found, &size_parameter)
        .or_else(|| by_answer(models, found, response, &size_parameter));
    (paging, total)
}

fn by_parameter(
    models: &Models,
    operation: &Operation,
    found: &Found,
    size_parameter: &str,
) -> Option<Paging> {
    let base = |style, input: &Input| Paging {
        style,
        parameter: input.name.clone(),
        size_parameter: size_parameter.to_owned(),
        ..Paging::default()
    };
    if let Some(input) = named(operation, &PAGE).filter(|input| is_number(input)) {
        let zero = input.minimum == Some(0.0) || input.initial == "0";
        return Some(Paging { first: u32::from(!zero), ..base(PagingStyle::Page, input) });
    }
    if let Some(input) = named(operation, &OFFSET).filter(|input| is_number(input)) {
        return Some(base(PagingStyle::Offset, input));
    }
    let input = named(operation, &CURSOR).filter(|input| !is_time(input))?;
    let mut paging = base(PagingStyle::Cursor, input);
    paging.next = locate(models, found, &NEXT).unwrap_or_default();
    paging.more = locate(models, found, &MORE).unwrap_or_default();
    if paging.next.is_empty() {
        // Without a cursor in the answer, the last item is the cursor, if it has an id.
        let has_id = models.object(found.item).is_some_and(|item| item.properties.contains_key("id"));
        if !has_id || !takes_id(input) {
            return None;
        }
        paging.from_last = "id".to_owned();
    }
    Some(paging)
}

fn by_answer(
    models: &Models,
    found: &Found,
    response: Option<&Response>,
    size_parameter: &str,
) -> Option<Paging> {
    let in_header = response
        .is_some_and(|response| response.headers.iter().any(|name| name.eq_ignore_ascii_case("link")));
    let next = locate(models, found, &NEXT_ADDRESS);
    if next.is_none() && !in_header {
        return None;
    }
    let size_parameter = size_parameter.to_owned();
    Some(Paging {
        style: PagingStyle::Link,
        next: next.unwrap_or_default(),
        size_parameter,
        ..Paging::default()
    })
}

fn named<'o>(operation: &'o Operation, names: &[&str]) -> Option<&'o Input> {
    let inputs = || operation.inputs.iter().filter(|input| input.place != super::InputPlace::Path);
    names.iter().find_map(|wanted| {
        let plain = |name: &str| name.to_lowercase().replace(['_', '-', '[', ']'], "");
        inputs().find(|input| plain(&input.name) == *wanted || input.name.eq_ignore_ascii_case(wanted))
    })
}

/// Whether the value may be a number. Texts called so may be the beginning of a span of time as well.
fn is_number(input: &Input) -> bool {
    use super::InputKind::*;
    let is_ambiguous = ["from", "start", "p"].contains(&input.name.to_lowercase().as_str());
    matches!(input.kind, Integer | Number) || input.kind == Text && !is_ambiguous
}

fn is_time(input: &Input) -> bool {
    use super::InputKind::*;
    matches!(input.kind, Date | Datetime | Time)
}

/// Whether the id of an item can be the cursor: a token is made by the API, and `since` may be a time.
fn takes_id(input: &Input) -> bool {
    let name = input.name.to_lowercase().replace(['_', '-', '[', ']'], "");
    let is_integer = input.kind == super::InputKind::Integer;
    ["cursor", "after", "startingafter", "marker", "sinceid"].contains(&name.as_str())
        || name == "since" && is_integer
}

fn total(models: &Models, found: &Found) -> Vec<String> {
    if found.is_connection {
        return if found.has_total { vec!["totalCount".to_owned()] } else { Vec::new() };
    }
    locate(models, found, &TOTAL).unwrap_or_default()
}

/// Parts of an answer that tell about its pages.
const DETAILS: [&str; 9] =
    ["meta", "metadata", "pagination", "paging", "page", "links", "_links", "response_metadata", "page_info"];

/// The path to a field of one of these names: in the object around the items, or in the whole answer.
fn locate<'s>(models: &Models<'s>, found: &Found<'s>, names: &[&str]) -> Option<Vec<String>> {
    let around = found.envelope.and_then(|envelope| within(models, envelope, names));
    let around = around.map(|rest| found.inside.iter().cloned().chain(rest).collect());
    around.or_else(|| within(models, found.outer?, names))
}

/// The same within one object and its details.
fn within<'s>(models: &Models<'s>, object: &'s Model, names: &[&str]) -> Option<Vec<String>> {
    let direct = |object: &'s Model| {
        names.iter().find_map(|wanted| {
            let (name, model) =
                object.properties.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
            if model.properties.is_empty() && model.items.is_none() && models.object(model).is_none() {
                return Some(vec![name.clone()]);
            }
            // A link of HAL: `_links.next.href`.
            let link = models.object(model).filter(|_| *wanted == "next")?;
            link.properties.contains_key("href").then(|| vec![name.clone(), "href".to_owned()])
        })
    };
    direct(object).or_else(|| {
        DETAILS.iter().find_map(|wrapper| {
            let inner = models.object(object.properties.get(*wrapper)?)?;
            direct(inner).map(|rest| std::iter::once((*wrapper).to_owned()).chain(rest).collect())
        })
    })
}
