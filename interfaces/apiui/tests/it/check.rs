//! The checker against two corpora: code that tries to get out (none passes, each for its reason) and code as a model
//! would write it (all of it passes).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use apiui::check::approved::APPROVED;
use apiui::check::{PageOptions, Rule, check, check_with_servers, html_page, transform};
use apiui::plan::{Options, plan};
use apiui::print::print_whole;
use apiui::spec::Spec;

use crate::shared::read_file;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn files(name: &str, extension: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

struct Entry {
    name: String,
    rule: String,
    code: String,
}

/// The corpus, each entry as a whole module.
fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (file, text) in files("bypass", "txt") {
        for part in text.split("### ").skip(1) {
            let (head, code) = part.split_once('\n').unwrap();
            let [name, rule, shape] = head.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("{file}: {head}")
            };
            entries.push(Entry {
                name: format!("{file}: {name}"),
                rule: rule.to_owned(),
                code: whole(shape, code.trim_end()),
            });
        }
    }
    entries
}

fn whole(shape: &str, code: &str) -> String {
    let definitions: String = APPROVED.iter().map(|approved| approved.source).collect();
    let start = format!(
        "import {{ useState, useReducer, useEffect, useMemo, useCallback, useRef, useId, useContext, memo, createContext, Fragment }} \
         from \"react\";\nconst SERVERS = [\"https://api.example.com\"];\n{definitions}"
    );
    let app = "export default function App({ request, data, items, children, onPick }) {\n";
    match shape {
        "module" => code.to_owned(),
        "top" => format!("{start}{code}\n{app}return null;\n}}\n"),
        "body" => format!("{start}{app}{code}\nreturn null;\n}}\n"),
        "jsx" => format!("{start}{app}return (\n{code}\n);\n}}\n"),
        other => panic!("no shape {other}"),
    }
}

#[test]
fn what_stands_around_the_entries_passes() {
    for (shape, code) in [("top", "const x = 1;"), ("body", "const x = 1;"), ("jsx", "<p>x</p>")] {
        let told = check(&whole(shape, code)).err().unwrap_or_default();
        assert!(told.is_empty(), "{shape}: {told:#?}");
    }
}

#[test]
fn no_bypass_passes_and_each_is_refused_for_its_reason() {
    let entries = entries();
    let mut wrong = Vec::new();
    for entry in &entries {
        match check(&entry.code) {
            Ok(_) => wrong.push(format!("PASSED {}", entry.name)),
            Err(refusals) => {
                let rules: Vec<_> =
                    refusals.iter().map(|refusal| serde_json::to_value(refusal.rule).unwrap()).collect();
                if !rules.iter().any(|rule| *rule == entry.rule.as_str()) {
                    wrong.push(format!("{}: wanted {}, told {}", entry.name, entry.rule, refusals[0]));
                }
                let lines = entry.code.lines().count().max(1);
                assert!(
                    refusals.iter().all(|refusal| (1..=lines).contains(&refusal.line)),
                    "{}: {refusals:?}",
                    entry.name
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    println!("figure: {} hostile requests for interface code, 0 accepted", entries.len());
}

/// Large data at the end of a module is checked as JSON; a module with it must not get further than one without.
#[test]
fn large_data_at_the_end_hides_nothing() {
    let padding = "x".repeat(20_000);
    let start = "import { useState } from \"react\";\nconst SERVERS = [\"\"];\n";
    let app = |body: &str| format!("{start}export default function App() {{\n  return {body};\n}}\n");
    let data = |inner: &str| format!("const PLAN = {{\n  \"padding\": \"{padding}\", {inner}\n}};\n");
    let passes = app("<p>{PLAN.title}</p>") + &data("\"title\": \"a < b\"");
    let plain = transform(&passes).unwrap_or_else(|refusals| panic!("{}", refusals[0]));
    assert!(plain.ends_with("\"title\": \"a < b\"\n};\n"), "the data is in the plain form");
    assert!(!plain.contains("JSON.parse"));
    let options = PageOptions::default();
    let page = html_page(&passes, "", &options).unwrap();
    assert!(page.contains("const PLAN = {") && !page.contains("JSON.parse"));
    for hostile in [
        // Keys that change what an object is.
        app("<p>{PLAN.title}</p>") + &data("\"__proto__\": {}"),
        app("<p>{PLAN.title}</p>") + &data("\"a\": [{\"$$typeof\": 1}]"),
        // Values that the rules look through.
        app("<a href={PLAN.title}>x</a>") + &data("\"title\": \"javascript:alert(1)\""),
        app("<p style={PLAN.style}>x</p>") + &data("\"style\": {\"background\": \"url(https://x.example)\"}"),
        // Not JSON, not the last statement, or within something else.
        app("<p>{PLAN.title}</p>") + &data("\"title\": alert(1)"),
        app("<p>{PLAN.title}</p>") + &data("\"title\": 1") + "alert(1);\n",
        app("<p/>") + "const text = `\n" + &data("\"title\": \"`; alert(1); `\""),
        app("<p/>") + "/*\n" + &data("\"title\": \"*/ alert(1); /*\""),
        format!(
            "{start}export default function App() {{\n  return <p>\n{}",
            data("\"title\": \"</p>; } //\"")
        ),
        // Names with a meaning of their own.
        app("<p/>") + &data("\"title\": 1").replacen("PLAN", "JSON", 1),
        app("<p/>") + &data("\"title\": 1").replacen("PLAN", "SERVERS", 1),
    ] {
        let told = check(&hostile);
        assert!(told.is_err(), "{}", &hostile[..hostile.len().min(300)]);
        assert!(html_page(&hostile, "", &options).is_err());
    }
}

#[test]
fn the_corpus_is_large_and_without_doubles() {
    let entries = entries();
    let names: HashSet<_> = entries.iter().map(|entry| &entry.name).collect();
    let codes: HashSet<_> = entries.iter().map(|entry| &entry.code).collect();
    assert!(entries.len() >= 250);
    assert_eq!(names.len(), entries.len());
    let mut seen = HashSet::new();
    let doubled: Vec<_> =
        entries.iter().filter(|entry| !seen.insert(&entry.code)).map(|entry| &entry.name).collect();
    assert_eq!(codes.len(), entries.len(), "{doubled:?}");
}

#[test]
fn modules_as_a_model_writes_them_pass() {
    let modules = files("benign", "jsx");
    let mut wrong = Vec::new();
    for (name, code) in &modules {
        if let Err(refusals) = transform(code) {
            let told: Vec<_> = refusals.iter().map(ToString::to_string).collect();
            wrong.push(format!("{name}:\n  {}", told.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(modules.len() >= 30, "{} modules", modules.len());
}

/// The specifications of our own that can be used.
pub(crate) fn own_specifications() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder("specs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// The specifications of the shared folder that can be used, where it is present.
fn shared_specifications() -> Vec<(PathBuf, Spec)> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/specs");
    let mut found = Vec::new();
    let mut folders = vec![shared];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(reading) = read_file(&path) {
                found.push((path, reading.spec));
            }
        }
    }
    found
}

#[test]
fn all_that_is_printed_passes() {
    let mut wrong = Vec::new();
    let own = own_specifications().into_iter().map(|path| {
        let spec = read_file(&path).unwrap().spec;
        (path, spec)
    });
    for (path, spec) in own.chain(shared_specifications()) {
        let plan = plan(&spec, &Options::default());
        match check(&print_whole(&plan)) {
            Err(refusals) => {
                let told: Vec<_> = refusals.iter().map(ToString::to_string).collect();
                wrong.push(format!("{}:\n  {}", path.display(), told.join("\n  ")));
            }
            Ok(checked) => {
                let servers: Vec<_> = plan.servers.iter().map(|server| server.url.clone()).collect();
                assert_eq!(
                    checked.servers,
                    if servers.is_empty() { vec![String::new()] } else { servers },
                    "{}",
                    path.display()
                );
                assert!(checked.operations.len() >= plan.operations.len(), "{}", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{} modules are refused, the first:\n{}", wrong.len(), wrong[0]);
}

/// Texts that would make a parser descend without end are refused before it sees them, with their place.
#[test]
fn depth_is_refused_and_not_fatal() {
    let end = "\nexport default function App() { return null; }\n";
    let many = 300_000;
    let deep = [
        "const x = ".to_owned() + &"(".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"[".repeat(many) + &"]".repeat(many),
        "const x = ".to_owned() + &"{a:".repeat(many) + "1" + &"}".repeat(many),
        "const x = ".to_owned() + &"!".repeat(many) + "1",
        "const x = ".to_owned() + &"1+".repeat(many) + "1",
        "const x = ".to_owned() + &"a=>".repeat(many) + "1",
        "const x = ".to_owned() + &"1?1:".repeat(many) + "1",
        "const x = a".to_owned() + &".a".repeat(many),
        "const x = a".to_owned() + &"()".repeat(many),
        "const x = ".to_owned() + &"`${".repeat(many) + "1" + &"}`".repeat(many),
        "const x = ".to_owned() + &"<p>".repeat(many) + &"</p>".repeat(many),
        "const x = ".to_owned() + &"<p a={".repeat(many) + "1" + &"}/>".repeat(many),
        "const x = ".to_owned() + &"typeof ".repeat(many) + "1",
        "const x = ".to_owned() + &"a+function(){}+".repeat(many) + "1",
        "const x = () => { ".to_owned() + &"if (1) a(); else ".repeat(many) + "a(); }",
        "const x = () => { ".to_owned() + &"if (1) return 1; else ".repeat(many) + "return 2; }",
        // Closing brackets that are text must not hide open ones.
        "const x = ".to_owned() + &"(\")\",".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"(/)/,".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"(`)`,".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"(/*)*/".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"(<p>)</p>,".repeat(many) + "1" + &")".repeat(many),
        "const x = ".to_owned() + &"(()=>{if(1)/})/.a,".repeat(many) + "1",
    ];
    for code in deep {
        let refusals = check(&(code.clone() + end)).unwrap_err();
        assert_eq!(refusals[0].rule, Rule::Syntax, "{}", &code[..40]);
        assert!(
            refusals[0].what.contains("deep")
                || refusals[0].what.contains("long")
                || refusals[0].what.contains("clear"),
            "{}: {}",
            &code[..40],
            refusals[0]
        );
    }
    let allowed = [
        "const x = ".to_owned() + &"(".repeat(240) + "1" + &")".repeat(240),
        "const x = ".to_owned() + &"1+".repeat(19_000) + "1",
        "const x = ".to_owned() + &"!".repeat(19_000) + "1",
        "const x = ".to_owned() + &"1?1:".repeat(9_000) + "1",
        "const a = 1, x = a".to_owned() + &".a".repeat(19_000),
        "const x = () => { ".to_owned() + &"if (1) return 1; else ".repeat(4_000) + "return 2; }",
        "const x = ".to_owned() + &"<p>".repeat(240) + &"</p>".repeat(240),
        "const x = [".to_owned() + &"{ a: [1, 2] },".repeat(50_000) + "]",
    ];
    for code in allowed {
        let told = check(&(code.clone() + end)).err().unwrap_or_default();
        assert!(told.is_empty(), "{}: {:?}", &code[..40], told.first());
    }
}

#[test]
fn a_place_is_told_by_line_and_column() {
    let refusals = check("import { useState } from \"react\";\n\nexport default function App() {\n  const ä = \"ö\"; eval(ä);\n  return null;\n}\n").unwrap_err();
    assert_eq!((refusals.len(), refusals[0].line, refusals[0].column), (1, 4, 18));
    assert_eq!(
        refusals[0].to_string(),
        "4:18: `eval` is not available here. Declare it in the module, or leave it out."
    );
}

#[test]
fn a_page_carries_its_policy_and_cannot_be_left_by_its_texts() {
    let code = "const SERVERS = [\"https://api.example.com:8443/v1\", \"/v1\"];\n\
                export default function App() { return <p title=\"</script>\">{\"<!-- <script> </SCRIPT>\"}</p>; }\n";
    let options = PageOptions {
        token_urls: Vec::new(),
        title: "</title><script>alert(1)</script>".to_owned(),
        language: "\"><script>".to_owned(),
    };
    let page = html_page(code, "globalThis.dragomanReact = \"</script>\";", &options).unwrap();
    assert_eq!(page.matches("<script").count(), 3, "{page}");
    assert_eq!(page.to_lowercase().matches("</script").count(), 3, "{page}");
    assert_eq!((page.matches("<!--").count(), page.matches("<!-- -->").count()), (1, 1), "{page}");
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(policy.contains("connect-src 'self' https://api.example.com:8443;"), "{policy}");
    assert!(
        !policy.contains("unsafe-eval")
            && !policy.split("script-src").nth(1).unwrap().split(';').next().unwrap().contains("unsafe")
    );
}

#[test]
fn changed_code_calls_whom_it_called_before() {
    let code = "const SERVERS = [\"https://api.example.com\", \"https://evil.example\"];\nexport default function App() { return null; }\n";
    let both = ["https://api.example.com".to_owned(), "https://evil.example".to_owned()];
    assert_eq!(check_with_servers(code, &both).unwrap().servers, both);
    let refusals = check_with_servers(code, &both[..1]).unwrap_err();
    assert_eq!((refusals[0].rule, refusals[0].line), (Rule::Servers, 1));
    assert!(refusals[0].what.contains("https://evil.example"), "{}", refusals[0]);
}

/// Cut and mixed code is refused or passes; it never ends the check, and what passes is still code.
#[test]
fn mutilated_code_gets_an_answer() {
    let scale: u64 =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut sources: Vec<String> = files("benign", "jsx").into_iter().map(|(_, code)| code).collect();
    sources.extend(entries().into_iter().step_by(7).map(|entry| entry.code));
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).unwrap()
    };
    for _ in 0..300 * scale {
        let mut code = sources[random(sources.len())].clone();
        for _ in 0..=random(4) {
            let mut cut = |text: &str| {
                let at = random(text.len() + 1);
                (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
            };
            let (start, end) = (cut(&code), cut(&code));
            let (start, end) = (start.min(end), start.max(end).min(start.min(end) + 40));
            let end = (start..=end).rev().find(|at| code.is_char_boundary(*at)).unwrap_or(start);
            let other = &sources[random(sources.len())];
            let from = (0..=random(other.len())).rev().find(|at| other.is_char_boundary(*at)).unwrap_or(0);
            let piece: String = other[from..].chars().take(random(40)).collect();
            code.replace_range(start..end, &piece);
        }
        if let Ok(plain) = transform(&code) {
            assert!(plain.contains("export default"), "{code}");
        }
    }
}
