//! Wishes in plain language: many wordings, questions and their answers, and what is refused.

use apiui::customize::{Outcome, PlanEdit, RefusalKind, Turn, apply, wish};
use apiui::plan::{Options, Plan, plan};
use apiui::print::{plan_of, print_whole};

fn bookshop() -> Plan {
    plan(&crate::own::read("bookshop.yaml").spec, &Options::default())
}

/// One table only: nothing to ask about.
fn parcels() -> Plan {
    plan(&crate::own::read("parcels.json").spec, &Options::default())
}

fn turn(role: &str, content: &str) -> Turn {
    Turn { role: role.to_owned(), content: content.to_owned() }
}

/// The edits as short text: `hideColumn Books id`.
fn told(edits: &[PlanEdit]) -> String {
    let one = |edit: &PlanEdit| {
        let value = serde_json::to_value(edit).expect("an edit is JSON");
        let object = value.as_object().expect("an object");
        let words: Vec<String> = object
            .values()
            .filter(|value| !value.is_null())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        words.join(" ")
    };
    edits.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What is wrong with the outcome of a wish, if anything.
fn fault(plan: &Plan, prompt: &str, expected: &str) -> Option<String> {
    let Outcome::Edited { edits, .. } = wish(plan, prompt, &[]) else {
        return Some(format!("“{prompt}” gave {:?}", wish(plan, prompt, &[])));
    };
    (told(&edits) != expected).then(|| format!("“{prompt}” gave {}, not {expected}", told(&edits)))
}

fn check(plan: &Plan, prompt: &str, expected: &str) {
    match wish(plan, prompt, &[]) {
        Outcome::Edited { plan: changed, edits, description, .. } => {
            assert_eq!(told(&edits), expected, "“{prompt}”");
            assert!(!description.is_empty(), "“{prompt}” is told");
            changed.validate().expect("a valid plan");
            assert_eq!(
                plan_of(&print_whole(&changed)).as_ref(),
                Ok(changed.as_ref()),
                "“{prompt}”: the plan survives"
            );
        }
        other => panic!("“{prompt}” gave {other:?}"),
    }
}

#[test]
fn other_words_for_the_same_wish() {
    let plan = bookshop();
    for (prompt, expected) in [
        ("Put a search field on top of the books", "addSearch Books []"),
        ("I want to be able to look up books by title", "addSearch Books [\"title\"]"),
        ("let me find authors by name", "addSearch Authors [\"name\"]"),
        ("look up authors by typing part of their name", "addSearch Authors [\"name\"]"),
        ("I want to find authors by entering a few letters of the name", "addSearch Authors [\"name\"]"),
        ("let me look up books by part of the title", "addSearch Books [\"title\"]"),
        ("type part of a title to find books", "addSearch Books [\"title\"]"),
        ("only show ten books at a time", "pageSize Books 10"),
        ("display twenty-five rows per page", "pageSize 25"),
        ("hide orders from the menu", "removeView Orders"),
        ("remove reviews from the navigation bar", "removeView Reviews"),
        ("put price right after title", "moveColumn Books price 2"),
        ("move genre directly before title", "moveColumn Books genre 1"),
        ("add a dropdown to pick the genre", "addFilter Books genre"),
        ("I need a picker for the status", "addFilter Orders status"),
        ("call orders \"Purchases\" everywhere", "renameView Orders Purchases"),
        ("rename the app to Five Stars", "title Five Stars"),
    ] {
        check(&plan, prompt, expected);
    }
}

#[test]
fn wishes_that_name_everything() {
    let plan = bookshop();
    let all = [
        // search
        ("Add a search bar to filter books by title", "addSearch Books [\"title\"]"),
        ("add a search box to the Books table", "addSearch Books []"),
        ("Please add a search bar to the authors table.", "addSearch Authors []"),
        ("I want to search orders by email", "addSearch Orders [\"email\"]"),
        ("make the books searchable by title and isbn", "addSearch Books [\"title\",\"isbn\"]"),
        ("Could you put a search field on the orders page?", "addSearch Orders []"),
        (
            "search bar for all tables",
            "addSearch Books []; addSearch Reviews []; addSearch Authors []; addSearch Orders []",
        ),
        // filters
        ("Add a filter for genre", "addFilter Books genre"),
        ("let me filter orders by status", "addFilter Orders status"),
        ("add a status filter", "addFilter Orders status"),
        ("Filter by genre and price in books", "addFilter Books genre; addFilter Books price"),
        // sort
        ("Sort books by price", "sort Books price false"),
        ("sort by price descending", "sort Books price true"),
        ("order the books by title, newest first", "sort Books title true"),
        ("Sort the orders table by quantity in descending order", "sort Orders quantity true"),
        ("sort books newest first", "sort Books updatedAt true"),
        ("show the most recent books first", "sort Books updatedAt true"),
        ("sort authors alphabetically", "sort Authors name false"),
        // pages
        ("show 50 books per page", "pageSize Books 50"),
        ("Show 50 rows per page", "pageSize 50"),
        ("set the page size to 100", "pageSize 100"),
        ("page size 25 for orders", "pageSize Orders 25"),
        ("10 items per page please", "pageSize 10"),
        ("turn off pagination", "pagination false"),
        ("enable paging", "pagination true"),
        // columns
        ("Hide the isbn column", "hideColumn Books isbn"),
        (
            "remove the price and isbn columns from the books table",
            "hideColumn Books price; hideColumn Books isbn",
        ),
        ("don't show the note column in orders", "hideColumn Orders note"),
        ("get rid of the website column", "hideColumn Authors website"),
        ("Show the published column", "showColumn Books published"),
        ("add the summary column to books", "showColumn Books summary"),
        ("display keywords column", "showColumn Books keywords"),
        (
            "show all columns of books",
            "showColumn Books summary; showColumn Books published; showColumn Books updatedAt; showColumn Books keywords; showColumn Books dimensions",
        ),
        (
            "show only title and price in the books table",
            "showColumn Books title; showColumn Books price; hideColumn Books id; hideColumn Books isbn; hideColumn Books authorId; hideColumn Books genre; hideColumn Books inStock",
        ),
        ("Rename the isbn column to Book number", "renameColumn Books isbn Book number"),
        ("rename \"In stock\" to \"Available now\"", "renameColumn Books inStock Available now"),
        ("change the label of quantity to Copies", "renameColumn Orders quantity Copies"),
        ("call the price column Cost", "renameColumn Books price Cost"),
        ("Move the price column first", "moveColumn Books price 0"),
        ("move isbn to the end", "moveColumn Books isbn 6"),
        ("put genre before price", "moveColumn Books genre 2"),
        ("move price after genre", "moveColumn Books price 5"),
        ("move the stars column to position 2", "moveColumn Reviews stars 1"),
        (
            "reorder the columns of books: title, price, genre",
            "moveColumn Books title 0; moveColumn Books price 1; moveColumn Books genre 2",
        ),
        // layout and looks
        ("Show books as cards", "layout Books cards"),
        ("use cards", "layout cards"),
        ("display everything as a table", "layout default"),
        ("switch orders to a card view", "layout Orders cards"),
        ("make it more compact", "layout compact"),
        ("Use the dark theme", "theme dark"),
        ("dark mode", "theme dark"),
        ("make it dark", "theme dark"),
        ("switch back to light mode", "theme light"),
        ("follow the system theme", "theme auto"),
        // names
        ("Change the title to \"My books\"", "title My books"),
        ("rename the app to Book Nook", "title Book Nook"),
        ("call it ‘The Shelf’", "title The Shelf"),
        ("rename the Orders view to Purchases", "renameView Orders Purchases"),
        ("rename authors to Writers", "renameView Authors Writers"),
        // views
        ("Remove the orders view", "removeView Orders"),
        ("hide the authors page", "removeView Authors"),
        ("get rid of reviews", "removeView Reviews"),
        // read-only and groups
        ("make it read-only", "readOnly true"),
        ("disable editing", "readOnly true"),
        ("remove the edit and delete buttons", "readOnly true"),
        ("allow editing", "readOnly false"),
        ("group books by genre", "groupBy Books genre"),
        ("Group the orders by status", "groupBy Orders status"),
        // other words for the same
        ("I don't want to see orders", "removeView Orders"),
        ("paginate by 5", "pageSize 5"),
        ("change \"Title\" to \"Name\" in books", "renameColumn Books title Name"),
        ("rename status to State in the orders table", "renameColumn Orders status State"),
        (
            "reorder columns: price, title, id",
            "moveColumn Books price 0; moveColumn Books title 1; moveColumn Books id 2",
        ),
        ("swap title and price", "moveColumn Books price 1; moveColumn Books title 2"),
        ("swap price with id in books", "moveColumn Books price 0; moveColumn Books id 2"),
        ("make it a table again", "layout default"),
        ("can we have a darker look?", "theme dark"),
        ("could we get a lighter background", "theme light"),
        ("users should not be able to change anything", "readOnly true"),
        ("nobody may edit data", "readOnly true"),
        // several at once
        ("use the dark theme and hide the isbn column", "theme dark; hideColumn Books isbn"),
        (
            "Sort orders by quantity, then show 20 rows per page. Also rename the note column to Remark",
            "sort Orders quantity false; pageSize 20; renameColumn Orders note Remark",
        ),
    ];
    let faults: Vec<String> =
        all.iter().filter_map(|(prompt, expected)| fault(&plan, prompt, expected)).collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), all.len(), faults.join("\n"));
    for (prompt, expected) in all {
        check(&plan, prompt, expected);
    }
}

#[test]
fn wishes_that_undo() {
    let plan = bookshop();
    let after = |edits: &[PlanEdit]| {
        let mut changed = plan.clone();
        for edit in edits {
            apply(&mut changed, edit).expect("possible");
        }
        changed
    };
    let books = || "Books".to_owned();
    let searched = after(&[PlanEdit::AddSearch { view: books(), fields: vec!["Title".to_owned()] }]);
    check(&searched, "remove the search bar", "removeSearch Books");
    let filtered = after(&[PlanEdit::AddFilter { view: books(), field: "genre".to_owned() }]);
    check(&filtered, "remove the genre filter", "removeFilter Books genre");
    let grouped = after(&[PlanEdit::GroupBy { view: books(), field: Some("genre".to_owned()) }]);
    check(&grouped, "remove the grouping", "groupBy Books");
    let sorted = after(&[PlanEdit::Sort { view: books(), field: "price".to_owned(), descending: true }]);
    check(&sorted, "stop sorting", "clearSort Books");
    let removed = after(&[PlanEdit::RemoveView { view: "Orders".to_owned() }]);
    check(&removed, "bring back the orders view", "restoreView Orders");
    check(&removed, "restore orders", "restoreView Orders");
    check(&removed, "show orders again", "restoreView Orders");
    let hidden = after(&[PlanEdit::HideColumn { view: books(), field: "isbn".to_owned() }]);
    check(&hidden, "show the isbn column again", "showColumn Books isbn");
}

#[test]
fn one_table_needs_no_question() {
    let plan = parcels();
    for (prompt, expected) in [
        ("Add a search bar", "addSearch Parcels []"),
        ("Add a search bar to filter results by label", "addSearch Parcels [\"label\"]"),
        ("sort by weight", "sort Parcels weight false"),
        ("group by state", "groupBy Parcels state"),
        ("hide the id column", "hideColumn Parcels id"),
    ] {
        check(&plan, prompt, expected);
    }
}

#[test]
fn what_is_ambiguous_is_asked_and_the_answer_resolves_it() {
    let plan = bookshop();
    let Outcome::Clarify { question, options } = wish(&plan, "Add a search bar", &[]) else {
        panic!("a question")
    };
    assert_eq!(options, ["Books table", "Reviews table", "Authors table", "Orders table", "All tables"]);
    assert!(question.contains("Books") && question.ends_with('?'), "{question}");
    let asked = [turn("user", "Add a search bar"), turn("assistant", &question)];
    let mut answered = asked.to_vec();
    answered.push(turn("user", "Orders table"));
    let mut echoed = asked.to_vec();
    echoed.push(turn("user", "the second one"));
    for (prompt, history, expected) in [
        ("Orders table", &asked[..], "addSearch Orders []"),
        ("orders", &asked[..], "addSearch Orders []"),
        ("the second one", &asked[..], "addSearch Reviews []"),
        ("Books and Authors", &asked[..], "addSearch Books []; addSearch Authors []"),
        (
            "All tables",
            &asked[..],
            "addSearch Books []; addSearch Reviews []; addSearch Authors []; addSearch Orders []",
        ),
        ("Add a search bar", &answered[..], "addSearch Orders []"),
        ("the second one", &echoed[..], "addSearch Reviews []"),
        ("use the dark theme", &asked[..], "theme dark"),
    ] {
        match wish(&plan, prompt, history) {
            Outcome::Edited { edits, .. } => assert_eq!(told(&edits), expected, "“{prompt}”"),
            other => panic!("“{prompt}” gave {other:?}"),
        }
    }
    // Two tables have an id: the options are those two and both.
    let Outcome::Clarify { options, .. } = wish(&plan, "hide the id column", &[]) else {
        panic!("a question")
    };
    assert_eq!(options, ["Books table", "Authors table", "Orders table", "All tables"]);
}

#[test]
fn a_page_size_without_a_number_is_asked_about() {
    let plan = bookshop();
    for prompt in ["show more rows per page", "increase the page size", "fewer books on each page"] {
        let Outcome::Clarify { question, options } = wish(&plan, prompt, &[]) else { panic!("{prompt}") };
        assert_eq!(options[1], "25 rows per page");
        let asked = [turn("user", prompt), turn("assistant", &question)];
        for answer in ["25 rows per page", "25"] {
            match wish(&plan, answer, &asked) {
                Outcome::Edited { edits, .. } => assert_eq!(told(&edits), "pageSize 25", "“{answer}”"),
                other => panic!("“{answer}” gave {other:?}"),
            }
        }
    }
}

#[test]
fn a_page_is_no_longer_than_the_api_sends() {
    let plan = plan(&crate::own::read("pool.yaml").spec, &Options::default());
    let Outcome::Edited { plan, description, .. } = wish(&plan, "show 100 rows per page", &[]) else {
        panic!("a page size can be wished for")
    };
    let sizes: Vec<(&str, u32)> = plan
        .resources
        .iter()
        .filter_map(|one| Some((one.title.as_str(), one.list.as_ref()?.page_size)))
        .collect();
    assert_eq!(sizes, [("Hours", 30), ("Readings", 100), ("Pumps", 100), ("Lockers", 100)]);
    assert!(description.contains("Hours has 30, the most that its API sends"), "{description}");
}

#[test]
fn what_does_not_exist_is_said_with_alternatives() {
    let plan = bookshop();
    for (prompt, word, alternative) in [
        ("hide the color column", "color", "Title"),
        ("sort books by wieght", "wieght", "ID"),
        ("newest orders first", "date", "Status"),
        ("remove the invoices view", "invoices", "Books"),
        ("restore the orders view", "Orders", ""),
        ("add a filter for shoe size", "shoe size", "Genre"),
        ("show 100000 rows per page", "1000", "Show 50 rows per page"),
    ] {
        match wish(&plan, prompt, &[]) {
            Outcome::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::NotFound, "“{prompt}”: {}", refusal.message);
                assert!(refusal.message.contains(word), "“{prompt}”: {}", refusal.message);
                let known =
                    alternative.is_empty() || refusal.alternatives.iter().any(|one| one == alternative);
                assert!(known, "“{prompt}”: {:?}", refusal.alternatives);
            }
            other => panic!("“{prompt}” gave {other:?}"),
        }
    }
}

#[test]
fn a_quotation_mark_that_is_missing_is_named() {
    let plan = bookshop();
    for prompt in [
        "change the title to \"My shop and hide the id column",
        "rename the title column to Name\" in books",
        "call it “My shop",
        "title: My shop”, then use a dark theme",
    ] {
        match wish(&plan, prompt, &[]) {
            Outcome::Refused(refusal) => {
                assert!(
                    refusal.message.contains("quotation mark is missing"),
                    "“{prompt}”: {}",
                    refusal.message
                );
            }
            other => panic!("“{prompt}” gave {other:?}"),
        }
    }
    check(&plan, "rename the app to Screens of 27\" and more", "title Screens of 27\" and more");
}

#[test]
fn an_order_that_no_table_can_have_is_said() {
    let plan = plan(&crate::own::read("hostile.yaml").spec, &Options::default());
    let Outcome::Refused(refusal) = wish(&plan, "newest first", &[]) else { panic!("no table has a date") };
    assert!(refusal.message.contains("No table has “date”"), "{}", refusal.message);
    assert!(!refusal.alternatives.is_empty() && refusal.alternatives.iter().all(|one| !one.is_empty()));
}

#[test]
fn what_is_beyond_says_so_and_what_a_model_would_add() {
    let plan = bookshop();
    for prompt in [
        "Add a pie chart of sales",
        "Translate everything into French",
        "make the logo bounce",
        "",
        "¿?",
        "why is the sky blue",
        "remove all delete buttons",
    ] {
        match wish(&plan, prompt, &[]) {
            Outcome::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Beyond, "“{prompt}”: {}", refusal.message);
                assert!(refusal.message.contains("model") && !refusal.alternatives.is_empty());
                for alternative in refusal.alternatives {
                    let outcome = wish(&plan, &alternative, &[]);
                    assert!(!matches!(outcome, Outcome::Refused(_)), "{alternative}: {outcome:?}");
                }
            }
            other => panic!("“{prompt}” gave {other:?}"),
        }
    }
}

#[test]
fn every_example_works() {
    let plan = parcels();
    for example in apiui::customize::EXAMPLES {
        let example = example.replace("name", "label").replace("status", "state");
        let outcome = wish(&plan, &example, &[]);
        assert!(matches!(outcome, Outcome::Edited { .. }), "“{example}” gave {outcome:?}");
    }
}

#[test]
fn edits_from_outside_are_checked() {
    let mut plan = bookshop();
    let before = plan.clone();
    for json in [
        r#"{"edit": "hideColumn", "view": "Nowhere", "field": "id"}"#,
        r#"{"edit": "hideColumn", "view": "Books", "field": "constructor"}"#,
        r#"{"edit": "renameColumn", "view": "Books", "field": "id", "label": " "}"#,
        r#"{"edit": "pageSize", "size": 0}"#,
    ] {
        let edit: PlanEdit = serde_json::from_str(json).expect("an edit");
        assert!(apply(&mut plan, &edit).is_err(), "{json}");
        assert_eq!(plan, before, "{json} changes nothing");
    }
    for json in [
        r#"{"edit": "runCode"}"#,
        r#"{"edit": "theme", "theme": "url(x)"}"#,
        r#"{"edit": "title", "title": "x", "more": 1}"#,
    ] {
        assert!(serde_json::from_str::<PlanEdit>(json).is_err(), "{json}");
    }
    let edit: PlanEdit =
        serde_json::from_str(r#"{"edit": "title", "title": "</script>\u2028"}"#).expect("an edit");
    apply(&mut plan, &edit).expect("possible");
    assert!(!print_whole(&plan).contains("</script>"), "text stays text");
}

/// Each wish of a corpus that is not understood as it is meant, with what it gave.
fn missed(corpus: &str) -> (usize, Vec<String>) {
    let plan = bookshop();
    let wishes: Vec<(&str, &str)> = corpus.lines().filter_map(|line| line.split_once('\t')).collect();
    let faults = wishes.iter().filter_map(|(expected, prompt)| fault(&plan, prompt, expected)).collect();
    (wishes.len(), faults)
}

/// At most this many of 100 phrasings that the grammar was not written for may be missed.
const HELD_OUT_MISSES: usize = 10;

#[test]
fn the_corpus_is_understood() {
    let (known, missed_known) = missed(include_str!("../wishes/known.txt"));
    let (held_out, missed_held_out) = missed(include_str!("../wishes/held-out.txt"));
    assert!(held_out >= 150 && known == 2 * held_out, "{known} and {held_out} wishes");
    println!("{} of {known} and {} of {held_out} missed", missed_known.len(), missed_held_out.len());
    println!("{}", missed_held_out.join("\n"));
    assert!(missed_known.is_empty(), "{} of {known}:\n{}", missed_known.len(), missed_known.join("\n"));
    assert!(
        missed_held_out.len() * 100 <= held_out * HELD_OUT_MISSES,
        "{} of {held_out}:\n{}",
        missed_held_out.len(),
        missed_held_out.join("\n")
    );
}
