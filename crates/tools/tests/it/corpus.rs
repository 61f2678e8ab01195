//! Many files × many edits: every byte outside the change stays, every byte inside is the one asked for.

use tools::edit::document::Document;
use tools::edit::plan::{Change, plan};

/// How a text is stored.
#[derive(Clone, Copy, Debug)]
enum Form {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
    Utf16LeUnmarked,
    Latin1,
}

const FORMS: [Form; 6] =
    [Form::Utf8, Form::Utf8Marked, Form::Utf16Le, Form::Utf16Be, Form::Utf16LeUnmarked, Form::Latin1];
const ENDS: [&[&str]; 4] = [&["\n"], &["\r\n"], &["\r\n", "\n", "\n"], &["\n", "\r\n"]];

fn encode(text: &str, form: Form) -> Vec<u8> {
    match form {
        Form::Utf8 => text.as_bytes().to_vec(),
        Form::Utf8Marked => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        Form::Utf16Le => [vec![0xff, 0xfe], encode(text, Form::Utf16LeUnmarked)].concat(),
        Form::Utf16LeUnmarked => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Form::Utf16Be => {
            [vec![0xfe, 0xff], text.encode_utf16().flat_map(u16::to_be_bytes).collect()].concat()
        }
        Form::Latin1 => text.chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect(),
    }
}

/// Small and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Lines with no two alike, some blank, indented by tabs or spaces.
fn lines(dice: &mut Dice, form: Form) -> Vec<String> {
    let words: &[&str] = match form {
        Form::Latin1 => &["caf\u{e9}", "na\u{ef}ve", "x = 1;", "\u{fc}ber \u{f1}", "fn main() {"],
        Form::Utf16LeUnmarked => &["plain", "x = 1;", "fn main() {", "}", "# note"],
        _ => &["caf\u{e9}", "\u{1f980} crab", "\u{65e5}\u{672c}", "x = 1;", "fn main() {"],
    };
    let count = 2 + dice.roll(14);
    (0..count)
        .map(|number| match dice.roll(6) {
            0 if number > 0 => String::new(),
            kind => {
                let indent = ["", "\t", "    ", "  ", "\t\t", " "][kind];
                format!("{indent}{} {number:02}", words[dice.roll(words.len())])
            }
        })
        .collect()
}

struct Case {
    before: Vec<u8>,
    change: Change,
    after: Vec<u8>,
    name: String,
}

/// Replaces some of the lines, as a model would say it: with plain line ends, and maybe wrong indentation.
fn case(seed: u64) -> Case {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let form = FORMS[dice.roll(FORMS.len())];
    let ends = ENDS[dice.roll(ENDS.len())];
    let lines = lines(&mut dice, form);
    let last_has_end = dice.roll(3) > 0;
    let end_of =
        |line: usize| if line + 1 == lines.len() && !last_has_end { "" } else { ends[line % ends.len()] };
    let from = (0..lines.len()).map(|at| (at + dice.roll(lines.len())) % lines.len());
    let from = from.into_iter().find(|line| !lines[*line].is_empty()).unwrap_or(0);
    let to = (from + dice.roll(3)).min(lines.len() - 1);
    let to = (from..=to).rev().find(|line| !lines[*line].is_empty()).unwrap_or(from);
    let whole = dice.roll(4) == 0;
    let new: Vec<String> = (0..dice.roll(4)).map(|number| format!("\tnew {seed} {number}")).collect();

    let text = |lines: &[String], end: &dyn Fn(usize) -> String| -> String {
        lines.iter().enumerate().map(|(number, line)| line.clone() + &end(number)).collect()
    };
    let before = text(&lines, &|line| end_of(line).to_owned());
    let head = text(&lines[..from], &|line| end_of(line).to_owned());
    let tail = text(&lines[to + 1..], &|line| end_of(line + to + 1).to_owned());
    // New lines take the ends of the lines they replace, one for one and the last for the last.
    let last_end = end_of(to);
    let end_before = to.checked_sub(1).map_or("\n", end_of);
    let mut after = head;
    for (number, line) in new.iter().enumerate() {
        after.push_str(line);
        let twin = (from + number).min(to);
        match (number + 1 == new.len(), end_of(twin)) {
            (true, _) => {}
            (false, "") => after.push_str(end_before),
            (false, end) => after.push_str(end),
        }
    }
    // A file written whole says by its lines which went; an edit leaves the end of the last line it emptied.
    if !(whole && new.is_empty()) {
        after.push_str(last_end);
    }
    after.push_str(&tail);

    let plain = |text: &str| text.replace("\r\n", "\n");
    let change = if whole {
        Change::WriteAll { content: plain(&after) }
    } else {
        // Blanks at the ends of lines are what models get wrong most.
        let wrong = if new.is_empty() { "" } else { ["", "", " "][dice.roll(3)] };
        let old = lines[from..=to].join(&format!("{wrong}\n")) + wrong;
        Change::Replace { old, new: new.join("\n"), all: false }
    };
    let name = format!("seed {seed} {form:?} {ends:?} lines {from}-{to} of {lines:?} become {new:?}");
    Case { before: encode(&before, form), change, after: encode(&after, form), name }
}

#[test]
fn no_byte_is_wrong() {
    let mut done = 0;
    let mut seed = 0;
    while done < 2_500 {
        seed += 1;
        let Case { before, change, after, name } = case(seed);
        let document = Document::read(before.clone()).unwrap_or_else(|_| panic!("{name}: read as binary"));
        let planned = match plan(Some(&document), &change) {
            Ok(planned) => planned,
            // Blank lines alone are not what this is about.
            Err(refused)
                if refused.reason.contains("is empty") || refused.reason.contains("nothing would") =>
            {
                continue;
            }
            Err(refused) => panic!("{name}: {refused:?}"),
        };
        assert_eq!(planned.bytes, after, "{name} by {change:?}");
        done += 1;
    }
    assert!(seed < 2_600, "too many cases were left out: {seed}");
    println!("figure: {done} random edits of files in every encoding, 0 wrong bytes");
}
