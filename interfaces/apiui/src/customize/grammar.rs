//! The sentences that are understood, as patterns.
//!
//! Owns the wording of wishes and nothing of their meaning for a plan. The first pattern that fits decides, so the
//! order of `RULES` matters: what is more particular comes first. The regex engine is linear, so no prompt can stall it.

use regex::{Captures, Regex};
use std::sync::LazyLock;

/// What a wish is about. The text after each word is as the person wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Dark,
    Light,
    SystemTheme,
    ReadOnly(bool),
    /// Some buttons, but not all that change something.
    Buttons,
    Ungroup,
    Group(String),
    OrderColumns(String),
    MoveColumn {
        field: String,
        to: String,
    },
    SwapColumns(String),
    ClearSort,
    Sort(String),
    PageSize(u32),
    /// Another page size, but which?
    SomePageSize,
    Paging(bool),
    RemoveSearch,
    RemoveFilter(String),
    Search(String),
    Filter(String),
    Title(String),
    Rename {
        what: String,
        name: String,
    },
    Cards,
    Table,
    Compact,
    ShowOnly(String),
    ShowAll,
    Hide(String),
    Show(String),
    Restore(String),
}

/// The intent of one clause, and the part of it that was not used: where a view may be named.
pub(super) fn intent(clause: &str) -> Option<(Intent, String)> {
    let clause = &reworded(&without_order(clause));
    RULES.iter().find_map(|(pattern, make)| {
        let captures = pattern.captures(clause)?;
        let intent = make(&captures)?;
        let whole = captures.get(0)?;
        let mut rest = format!("{} {}", &clause[..whole.start()], &clause[whole.end()..]);
        for name in ["mid", "view"] {
            if let Some(found) = captures.name(name) {
                rest.push(' ');
                rest.push_str(found.as_str());
            }
        }
        Some((intent, rest))
    })
}

/// "In descending order" is a direction, not a view called Orders.
fn without_order(clause: &str) -> String {
    const DIRECTIONS: [(&str, &str); 4] = [
        ("in descending order", "descending"),
        ("in ascending order", "ascending"),
        ("in alphabetical order", "alphabetically"),
        ("in reverse order", "descending"),
    ];
    let mut text = clause.to_owned();
    for (words, direction) in DIRECTIONS {
        // Both are ASCII, so the place is the same in either case.
        if let Some(at) = text.to_ascii_lowercase().find(words) {
            text.replace_range(at..at + words.len(), direction);
        }
    }
    text
}

/// Other words for what the patterns say. What stands in quotes is a name and stays.
const REWORDED: [(&str, &str); 23] = [
    (r"\btwenty[- ]five (\w)", "25 $1"),
    (r"\bfive (\w)", "5 $1"),
    (r"\bten (\w)", "10 $1"),
    (r"\bfifteen (\w)", "15 $1"),
    (r"\btwenty (\w)", "20 $1"),
    (r"\bthirty (\w)", "30 $1"),
    (r"\bforty (\w)", "40 $1"),
    (r"\bfifty (\w)", "50 $1"),
    (r"\b(?:a|one) hundred (\w)", "100 $1"),
    (r"\bbe able to ", ""),
    (r"\b(?:right|directly|immediately|just|straight) (after|before|behind|next to|in front of)\b", "$1"),
    (r"\b((?:search|filter)\w*(?: ?(?:bar|box|field|input)s?)?) (?:on|at) (?:the )?top of\b", "$1 for"),
    (r"\bfrom (?:the )?(?:main |side )?(?:menu|nav|navigation|sidebar|menu bar|nav ?bar)(?: bar)?$", "view"),
    // "By typing part of their email" is by their email.
    (
        r"\bby (?:(?:typing|entering|writing|giving)(?: in)? )?(?:only |just )?(?:(?:a |an |the |any |some )?(?:parts?|pieces?|bits?|fragments?|beginning|start|few letters|letters|characters) of )",
        "by ",
    ),
    (r"\bby (?:typing|entering|writing|giving)(?: in)? ", "by "),
    (
        r"\b(?:type|typing|enter|entering)(?: in)? (?:(?:a |any |some )?(?:parts?|pieces?|bits?|few letters|letters) of )?(.+?) (?:to|and) (?:find|look ?up|search(?: for)?) (.+)$",
        "search $2 by $1",
    ),
    (r"\b(?:look ?up|look for|find) (.+) by ", "search $1 by "),
    (
        r"\b(?:drop ?down|select box|selector|picker)s?(?: menu)? (?:to|for) (?:pick|choose|select)(?:ing)? ",
        "filter for ",
    ),
    (r"\b(?:drop ?down|select box|selector|picker)s?(?: menu)? (?:for|with|of) ", "filter for "),
    (r"^(show|display|list|keep)((?: me)?) (.+) only$", "$1$2 only $3"),
    (r"\b(?:only|just) (show|display|list|load) (\d)", "$1 only $2"),
    (r"^((?:call|name|rename) .+) (?:everywhere|throughout)$", "$1"),
    (r"\bin place of\b", "instead of"),
];

fn reworded(clause: &str) -> String {
    static WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        // The patterns are constants that a test compiles, so none is ever left out.
        let compiled = |(pattern, other): &(&str, &'static str)| {
            Some((Regex::new(&format!("(?i){pattern}")).ok()?, *other))
        };
        REWORDED.iter().filter_map(compiled).collect()
    });
    // A quoted text is a name, and a name may be made of these words.
    if clause.contains('"') {
        return clause.trim_end_matches(" everywhere").to_owned();
    }
    let lower = clause.to_lowercase();
    let counts = ["page", "at a time", "at once", "rows", "entries"].iter().any(|word| lower.contains(word));
    let fits = |(pattern, _): &&(Regex, &str)| counts || !pattern.as_str().ends_with(r"(\w)");
    WORDS
        .iter()
        .filter(fits)
        .fold(clause.to_owned(), |text, (pattern, other)| pattern.replace(&text, *other).into_owned())
}

type Make = fn(&Captures) -> Option<Intent>;

static RULES: LazyLock<Vec<(Regex, Make)>> = LazyLock::new(|| {
    let mut rules: Vec<(Regex, Make)> = Vec::new();
    for (pattern, make) in
        APPEARANCE.iter().chain(&COLUMNS).chain(&ROWS).chain(&NAMES).chain(&LAYOUTS).chain(&VISIBILITY)
    {
        // The patterns are constants that a test compiles, so none is ever left out.
        if let Ok(regex) = Regex::new(&format!("(?i){}", expand(pattern))) {
            rules.push((regex, *make));
        }
    }
    rules
});

/// Abbreviations inside the patterns.
fn expand(pattern: &str) -> String {
    pattern
        .replace("HIDE", r"(?:hide|remove|drop|delete|get rid of|take (?:out|away|off)|do(?:n'?t| not) (?:show|display|(?:need|want|like)(?: to see| to have)?)|exclude|omit|leave out|eliminate)")
        .replace("SHOW", r"(?:show|see|display|add|include|unhide|reveal|make visible|give me|i (?:want|need|would like) to see|let me see)")
        .replace("STOP", r"(?:remove|clear|drop|stop|no|without|disable|turn off|undo|cancel|get rid of|hide|delete)")
        .replace("THE", r"(?:the |a |an |my |our |this |that )?")
        .replace("APP", r"(?:app(?:lication)?|interface|page|site|website|ui|dashboard|whole thing|header)")
}

fn text(captures: &Captures, name: &str) -> String {
    captures.name(name).map(|found| found.as_str().trim().to_owned()).unwrap_or_default()
}

const APPEARANCE: [(&str, Make); 10] = [
    (
        r"\b(?:system|automatic|auto|os|browser)(?:'s)?\b.*\b(?:theme|mode|colou?rs?)\b|\bfollow THE(?:system|os|browser)",
        |_| Some(Intent::SystemTheme),
    ),
    (
        r"\b(?:dark|darker|night|black)\b[ -]*(?:mode|theme|colou?rs?|look|style|version|scheme|background|design|ui)\b|\b(?:make|turn|switch|go|change|set|use|i want|prefer)\b.*\b(?:dark|darker|black)\b",
        |_| Some(Intent::Dark),
    ),
    (
        r"\b(?:light|lighter|bright|brighter|day|white)\b[ -]*(?:mode|theme|colou?rs?|look|style|version|scheme|background|design|ui)\b|\b(?:make|turn|switch|go|change|set|use|back)\b.*\b(?:light|lighter|bright|brighter|white)\b",
        |_| Some(Intent::Light),
    ),
    (r"\bdark\b *$", |_| Some(Intent::Dark)),
    (
        r"\b(?:disable|turn off|remove|undo|leave|exit|no longer|not)\b.*\b(?:read|view)[- ]?only\b|\b(?:allow|enable|permit|turn on|re-?enable)\b.*\b(?:edit(?:s|ing)?|changes|writ(?:e|es|ing)|creat(?:e|ing)|delet(?:e|ing)|modif\w+)\b|\beditable\b|\bread[- ]?write\b",
        |_| Some(Intent::ReadOnly(false)),
    ),
    (r"\b(?:read|view)[- ]?only\b|\blook(?:ing)? but (?:not|don'?t)\b", |_| Some(Intent::ReadOnly(true))),
    (
        r"\b(?:nobody|no one|(?:users?|people|visitors?|everyone|they)\b.*\b(?:can(?:'?t|not)|not|never))\b.*\b(?:change|edit|modify|write|delete|create|update)(?: anything| any data| data| things| it)?$",
        |_| Some(Intent::ReadOnly(true)),
    ),
    (
        r"\b(?:HIDE|disable|no|without|turn off) (?:all )?(?:of )?THE(?:edit|create|delete|new|save|add)[ -](?:buttons?|actions?|forms?|operations?)\b",
        |_| Some(Intent::Buttons),
    ),
    (
        r"\b(?:disable|prevent|forbid|block|no|without|remove|hide|turn off|stop|disallow|don'?t (?:allow|let))\b.*\b(?:editing|edits?|writing|changes|changing|modifications?|modifying|mutations?|creating|deleting|(?:edit|create|delete|new|save)(?:,? (?:and |or )?(?:edit|create|delete|new|save))* (?:buttons?|actions?|forms?|operations?))\b *(?:by users|of data|everywhere|completely|entirely|anything)?$",
        |_| Some(Intent::ReadOnly(true)),
    ),
    (r"\bSTOP\b.*\bgroup(?:ing|s|ed)?\b|\bungroup(?:ed)?\b", |_| Some(Intent::Ungroup)),
];

const COLUMNS: [(&str, Make); 8] = [
    (r"\b(?:swap|exchange|interchange) THE(?P<fields>.+? (?:and|with|for) .+)$", |c| {
        Some(Intent::SwapColumns(text(c, "fields")))
    }),
    (
        r"\b(?:group(?:ed|ing)?|organi[sz]ed?|bucket|cluster|categori[sz]ed?|split)\b(?P<mid>.*?)\b(?:by|per|according to|based on) THE(?P<field>.+)$",
        |c| Some(Intent::Group(text(c, "field"))),
    ),
    (
        r"\bcolumns?\b(?P<mid>[^:]*?)\b(?:order|sequence)\b[^:]*?(?:\b(?:to|as|should be|is)\b|:|=) *(?P<list>.+)$",
        |c| Some(Intent::OrderColumns(text(c, "list"))),
    ),
    (
        r"\b(?:re-?order|re-?arrange|arrange|order|put)\b THE(?P<mid>.*?)\bcolumns?\b(?P<view>[^:]*?)(?:\bas\b|\bto\b|\blike(?: this)?\b|\bso that they are\b|\bin(?:to)? (?:the |this )?order\b(?: of)?|:|=) *:? *(?P<list>.+,.+|.+ then .+|.+ and .+)$",
        |c| Some(Intent::OrderColumns(text(c, "list"))),
    ),
    (r"\b(?:order of|order for) THEcolumns?\b(?P<mid>.*?)(?:to|:|is|should be|=) *(?P<list>.+)$", |c| {
        Some(Intent::OrderColumns(text(c, "list")))
    }),
    (
        r"\b(?:move|put|place|shift|bring|make|set|drag) THE(?P<field>.+?)(?: columns?| fields?)?(?: to be| be| as| come| appear)?(?: to| at| on| in| into)? (?:the )?(?:very )?(?P<to>first|last|front|beginning|start|end|left|right|leftmost|rightmost|second|third|fourth|fifth|(?:position|place|number|column|spot) ?#? ?\d+)(?: column| position| place| side| one| spot| of the table| of the list)*(?P<view>(?: (?:in|of|on|for) .+)?)$",
        |c| {
            // "In front of price" names another column; the next rule reads it.
            let view = text(c, "view").to_lowercase();
            let is_place = ["table", "list", "page", "view"].iter().any(|word| view.contains(word));
            let names_column = view.starts_with("of ") && !is_place;
            let is_side = ["left", "right", "front"].contains(&text(c, "to").to_lowercase().as_str());
            (!(names_column && is_side))
                .then(|| Intent::MoveColumn { field: text(c, "field"), to: text(c, "to") })
        },
    ),
    (
        r"\b(?:move|put|place|shift|bring) THE(?P<field>.+?)(?: columns?| fields?)? (?P<to>(?:before|after|in front of|behind|left of|right of|to the left of|to the right of|next to) THE.+)$",
        |c| Some(Intent::MoveColumn { field: text(c, "field"), to: text(c, "to") }),
    ),
    (
        r"^THE(?P<field>.+?)(?: column| field)? (?:should|must|has to|needs to) (?:be|come|go|appear) (?:the )?(?P<to>first|last|second|third)(?: column)?(?P<view>.*)$",
        |c| Some(Intent::MoveColumn { field: text(c, "field"), to: text(c, "to") }),
    ),
];

const ROWS: [(&str, Make); 18] = [
    (
        r"\bSTOP\b.*\b(?:sort(?:ing|ed)?|ordering)\b|\bunsort(?:ed)?\b|\b(?:original|default|api'?s?) order\b",
        |_| Some(Intent::ClearSort),
    ),
    (
        r"\b(?:sort(?:ed|ing|able)?|order(?:ed|ing)?|arranged?|rank(?:ed)?|list(?:ed)?)\b(?P<mid>.*?)\b(?:by|on|according to|based on) THE(?P<field>.+)$",
        |c| Some(Intent::Sort(text(c, "field"))),
    ),
    (
        r"\b(?P<field>alphabetical(?:ly)?|a ?(?:-|to) ?z|z ?(?:-|to) ?a|reverse alphabetical(?:ly)?)\b(?P<view>.*)$",
        |c| Some(Intent::Sort(text(c, "field"))),
    ),
    (
        r"\b(?P<field>newest|latest|most recent(?:ly \w+)?|oldest|earliest|cheapest|most expensive|highest \w+|lowest \w+|largest \w+|smallest \w+|longest \w+|shortest \w+)(?P<mid>(?: \w+){0,2}?)(?: (?:come|go|on top|at the top|first|up top))+(?P<view>.*)$",
        |c| Some(Intent::Sort(text(c, "field"))),
    ),
    (
        r"\b(?P<n>\d{1,7})\b(?P<mid>[\w ]{0,40}?)\b(?:per|a|each|every|on (?:each|a|one|every)) page\b(?P<view>.*)$",
        |c| text(c, "n").parse().ok().map(Intent::PageSize),
    ),
    (
        r"\b(?:page ?(?:size|length)|paginat(?:e|ed|ion))\b(?P<mid>[^\d]*)(?P<n>\d{1,7})\b(?P<view>.*)$|\bpages? of (?P<m>\d{1,7})\b",
        |c| text(c, "n").parse().or_else(|_| text(c, "m").parse()).ok().map(Intent::PageSize),
    ),
    (
        r"\b(?:rows?|items?|entries|results?|records?)(?: shown)? per page\b(?P<mid>[^\d]*)(?P<n>\d{1,7})\b",
        |c| text(c, "n").parse().ok().map(Intent::PageSize),
    ),
    (
        r"\b(?:more|fewer|less|larger|bigger|longer|smaller|shorter|increase|reduce|decrease|raise|change)\b.*\b(?:(?:per|on (?:each|a|one|every)) page|page ?(?:size|length)|pages)$",
        |_| Some(Intent::SomePageSize),
    ),
    (
        r"\b(?:show|display|list|load|limit (?:it |the list |the table )?to)(?: me)?(?: only| just| up to| at most)? (?P<n>\d{1,7}) (?P<mid>\w+(?: \w+)?)(?: at (?:a time|once))?(?P<view>.*)$",
        |c| text(c, "n").parse().ok().map(Intent::PageSize),
    ),
    (
        r"\bSTOP\b.*\b(?:pag(?:ing|ination|er)|pages)\b|\b(?:show|display|list|load) (?:all|everything|every)(?: of)?(?: the)?(?: rows| items| entries| results| records)?(?: at once| on (?:one|a single) page| without pag\w+)+",
        |_| Some(Intent::Paging(false)),
    ),
    (
        r"\b(?:enable|add|turn on|use|with|bring back|want|need)\b.*\b(?:paging|pagination|pager)\b|^paginat(?:e|ed)\b",
        |_| Some(Intent::Paging(true)),
    ),
    (r"\b(?:HIDE|disable|turn off|no)\b.*\bsearch(?: ?(?:bar|box|field|input))?\b", |_| {
        Some(Intent::RemoveSearch)
    }),
    (
        r"\b(?:HIDE|disable|turn off|no)\b THE(?P<field>.*?)\bfilter(?:s|ing)?\b(?: (?:by|for|on) THE(?P<other>.+))?$",
        |c| Some(Intent::RemoveFilter(longer(text(c, "field"), text(c, "other")))),
    ),
    (
        r"\bsearch(?:able|ing|es|ed)?\b(?:[ -]?(?:bar|box|field|input|form|function(?:ality)?|feature))?(?P<mid>.*?)\b(?:by|on|over|across|through) THE(?P<field>.+)$",
        |c| Some(Intent::Search(text(c, "field"))),
    ),
    (r"\b(?P<field>[\w ]+?) search(?:[ -]?(?:bar|box|field|input))\b(?P<view>.*)$", |c| {
        Some(Intent::Search(before_search(&text(c, "field"))))
    }),
    (
        r"\bsearch(?:able|ing|es|ed|bar|box)?\b(?:[ -]?(?:bar|box|field|input|form|function(?:ality)?|feature))?(?P<view>.*)$|\b(?:find|look ?up) (?:things|items|rows|entries|records)\b|\b(?:quick|live) filter\b",
        |_| Some(Intent::Search(String::new())),
    ),
    (
        r"\b(?:SHOW|create|make|have|want|need|put|insert|with)\b THE(?:new |simple )?(?P<field>.+?)[ -](?:filter|drop ?down)s?\b(?P<view>.*)$",
        |c| {
            // "Add a filter for genre" is the next rule's.
            let field = text(c, "field");
            let is_article = ["a", "an", "the", "new", "some"].contains(&field.to_lowercase().as_str());
            (!is_article).then_some(Intent::Filter(field))
        },
    ),
    (
        r"\bfilter(?:s|able|ed|ing)?\b(?P<mid>.*?)\b(?:by|on|for|using|with) THE(?P<field>.+)$|\bfilter THE(?P<other>.+)$",
        |c| Some(Intent::Filter(longer(text(c, "field"), text(c, "other")))),
    ),
];

const NAMES: [(&str, Make); 8] = [
    (
        r#"\b(?:change|rename|replace) THE"(?P<what>[^"]+)"(?P<mid>.*?) (?:to|into|as|with|by) (?P<name>"[^"]+")(?P<view>.*)$"#,
        |c| Some(Intent::Rename { what: text(c, "what"), name: text(c, "name") }),
    ),
    (
        r"\b(?:change|set|make|update|rename|edit|let) THE(?:main |page |app |application |interface )?(?:title|heading|headline|app(?:lication)? name|name of THEAPP)(?: of THEAPP)? (?:to|as|into|be|=|:|read|say) *(?P<name>.+)$|\b(?:title|heading)(?: should be| must be| is|:|=) *(?P<other>.+)$",
        |c| {
            let name = longer(text(c, "name"), text(c, "other"));
            // "Rename title to Name in books" is about a column.
            let whole = c.get(0).map_or("", |whole| whole.as_str()).to_lowercase();
            let is_column = whole.starts_with("rename title") && name.contains(" in ");
            (!is_column).then_some(Intent::Title(name))
        },
    ),
    (
        r"\b(?:call|name|title|rename|label) (?:it|this|the APP|this APP|my APP|our APP)(?: to| as| into)? (?P<name>.+)$|\b(?:give|use) (?:it |the APP )?the (?:title|name) (?P<other>.+)$",
        |c| {
            let name = longer(text(c, "name"), text(c, "other"));
            // "Rename the website column to …" is about a column.
            let is_column = ["column ", "field "].iter().any(|word| name.to_lowercase().starts_with(word));
            (!is_column).then_some(Intent::Title(name))
        },
    ),
    (r"\b(?:rename|re-?label|re-?title)\b THE(?P<what>.+?) (?:to|as|into|=|->|=>|→) *(?P<name>.+)$", |c| {
        Some(Intent::Rename { what: text(c, "what"), name: text(c, "name") })
    }),
    (
        r"\b(?:change|set|update|edit) THE(?:label|header|heading|name|title|caption|text)(?: of| for| on) THE(?P<what>.+?) (?:to|as|into|=) *(?P<name>.+)$",
        |c| Some(Intent::Rename { what: text(c, "what"), name: text(c, "name") }),
    ),
    (
        r"\b(?:call|label|name) THE(?P<what>.+?)(?P<kind> column| field| header| view| page| section| tab) (?:as |to )?(?P<name>.+)$",
        |c| {
            Some(Intent::Rename {
                what: format!("{}{}", text(c, "what"), c.name("kind").map_or("", |k| k.as_str())),
                name: text(c, "name"),
            })
        },
    ),
    (r#"\b(?:call|name|label) THE(?P<what>[^"]+?) (?:as |to )?(?P<name>"[^"]+")(?P<view>.*)$"#, |c| {
        Some(Intent::Rename { what: text(c, "what"), name: text(c, "name") })
    }),
    (
        r"\b(?:change|show|display) THE(?P<what>.+?)(?P<kind> column| field| header| label)(?:'s)?(?: name| label| title| header)? (?:to|as|into) *(?P<name>.+)$",
        |c| {
            Some(Intent::Rename {
                what: format!("{}{}", text(c, "what"), c.name("kind").map_or("", |k| k.as_str())),
                name: text(c, "name"),
            })
        },
    ),
];

const LAYOUTS: [(&str, Make); 4] = [
    (r"\b(?:compact|dense|denser|tight|tighter|condensed)\b(?P<view>.*)$", |_| Some(Intent::Compact)),
    (
        r"\binstead of (?:the )?(?:cards?|tiles?|grid)|\b(?:as|to|into|in|using|use|with) (?:a |an |the |plain |normal |regular |simple )*(?:data )?(?:tables?|rows)(?: view| layout| format| style| again| instead)*$|\b(?:make|want|need|prefer)(?: it| this| them| everything)?(?: be)? (?:a |the |plain |normal |regular |simple )*tables?(?: again| instead)*$|\btable (?:view|layout|mode)\b|\bno (?:more )?cards\b|\bback to (?:the )?tables?\b",
        |_| Some(Intent::Table),
    ),
    (r"\b(?:cards?|tiles?|gallery|grid)\b(?: view| layout| format| style| mode)*(?P<view>.*)$", |_| {
        Some(Intent::Cards)
    }),
    (r"\b(?:tabular)\b(?P<view>.*)$", |_| Some(Intent::Table)),
];

const VISIBILITY: [(&str, Make); 8] = [
    (
        r"\b(?:restore|bring back|re-?add|put back|un-?hide|un-?remove|recover|undelete) THE(?P<what>.+)$|\bSHOW THE(?P<again>.+?) again\b",
        |c| Some(Intent::Restore(longer(text(c, "what"), text(c, "again")))),
    ),
    (
        r"\b(?:SHOW|keep|limit to|just)\b (?:me )?(?:only|just) THE(?P<what>.+)$|\b(?:only|just) (?:show|display|keep|include) THE(?P<other>.+)$|\bHIDE (?:all|every|everything)(?: of)?(?: the)?(?: other)?(?: columns?| fields?)? (?:except|but|apart from|other than)(?: for)? THE(?P<third>.+)$",
        |c| Some(Intent::ShowOnly(longer(longer(text(c, "what"), text(c, "other")), text(c, "third")))),
    ),
    (r"\bSHOW (?:me )?(?:all|every)(?: of)?(?: the)? (?:columns?|fields?)\b(?P<view>.*)$", |_| {
        Some(Intent::ShowAll)
    }),
    (r"\bHIDE THE(?P<what>.+)$", |c| Some(Intent::Hide(text(c, "what")))),
    (r"\b(?:no|without) THE(?P<what>.+?) (?:columns?|fields?|view|page|section|tab)\b(?P<view>.*)$", |c| {
        Some(Intent::Hide(format!("{} column", text(c, "what"))))
    }),
    (r"\bSHOW (?:me )?THE(?P<what>.+?(?: columns?| fields?)\b.*)$", |c| Some(Intent::Show(text(c, "what")))),
    (r"\b(?:add|include|unhide|reveal) THE(?P<what>.+)$", |c| Some(Intent::Show(text(c, "what")))),
    (r"^(?:show|see|display) (?:me )?THE(?P<what>.+)$", |c| Some(Intent::Show(text(c, "what")))),
];

fn longer(first: String, second: String) -> String {
    if second.len() > first.len() { second } else { first }
}

/// What stands before "search bar" names a field only if it is more than a verb and an article.
fn before_search(text: &str) -> String {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| {
            ![
                "add", "a", "an", "the", "put", "create", "insert", "with", "show", "give", "me", "us", "i",
                "want", "need", "have", "make", "please", "include", "new", "simple", "global", "nice",
                "provide", "there", "should", "be", "can", "you", "to", "also", "like", "would", "place",
            ]
            .contains(&word.to_lowercase().as_str())
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let count =
            APPEARANCE.len() + COLUMNS.len() + ROWS.len() + NAMES.len() + LAYOUTS.len() + VISIBILITY.len();
        assert_eq!(RULES.len(), count);
        for (pattern, _) in REWORDED {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
    }
}
