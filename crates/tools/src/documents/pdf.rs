//! The text of a PDF file, page by page, in the order in which it is drawn. No layout, no pictures.
//!
//! Invariants: a file that is encrypted or has no text gets a sentence; text, pages and nested drawings are bounded.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::pdf_font::Font;
use super::pdf_syntax::{Dict, File, Object, Reader, find, is_name};

const MAX_PAGES: usize = 5_000;
/// Bytes of text.
const MAX_TEXT: usize = 4 << 20;
/// Drawings within drawings.
const MAX_FORMS: usize = 4;
/// Words of all contents together.
const MAX_WORDS: usize = 4_000_000;
/// A drawing within a drawing counts as so many words, because its stream is read again.
const FORM_WORDS: usize = 1_000;
/// Levels of the tree of pages.
const MAX_LEVELS: usize = 64;

pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let mut file = File::read(bytes);
    if file.is_encrypted() {
        return Err("The PDF file is encrypted and cannot be read as text.".to_owned());
    }
    let pages = pages(&file);
    let mut out = format!("PDF with {} pages.\n", pages.len());
    let empty = out.len();
    let mut has_text = false;
    let (mut fonts, mut words) = (HashMap::new(), 0);
    for (number, page) in (1..).zip(&pages) {
        let mut drawing = Drawing { file: &mut file, fonts: &mut fonts, pen: Pen::default(), words };
        drawing.draw_page(page);
        words = drawing.words;
        let text = drawing.pen.text;
        has_text |= !text.trim().is_empty();
        out.push_str(&format!("\n## Page {number}\n{}\n", text.trim()));
        if out.len() > MAX_TEXT {
            out.push_str(&format!("\n[{} more pages]", pages.len() - number));
            break;
        }
    }
    match has_text && out.len() > empty {
        true => Ok(out),
        false => Err("The PDF file has no text; it may be a scan. Ask for a version with text.".to_owned()),
    }
}

/// A page with the resources that it has or inherits.
struct Page {
    dict: Dict,
    resources: Dict,
}

/// The pages in the order of the tree; in a file without one, by their numbers.
fn pages(file: &File<'_>) -> Vec<Page> {
    let mut pages = Vec::new();
    let catalogs = file.numbers().filter_map(|(_, object)| object.dict());
    let root =
        catalogs.filter(|dict| is_name(dict, b"Type", b"Catalog")).find_map(|dict| dict.get(&b"Pages"[..]));
    if let Some(root) = root {
        collect(file, root, &Dict::new(), (&mut HashSet::new(), 0), &mut pages);
    }
    if pages.is_empty() {
        let mut loose: Vec<(u32, &Dict)> = file
            .numbers()
            .filter_map(|(number, object)| Some((number, object.dict()?)))
            .filter(|(_, dict)| is_name(dict, b"Type", b"Page"))
            .collect();
        loose.sort_by_key(|(number, _)| *number);
        pages = loose.into_iter().take(MAX_PAGES).map(|(_, dict)| page(file, dict, &Dict::new())).collect();
    }
    pages
}

fn page(file: &File<'_>, dict: &Dict, inherited: &Dict) -> Page {
    let own = file.get(dict, b"Resources").dict().cloned();
    Page { dict: dict.clone(), resources: own.unwrap_or_else(|| inherited.clone()) }
}

/// `depth`: how many levels are above the node.
fn collect(
    file: &File<'_>,
    node: &Object,
    inherited: &Dict,
    (seen, depth): (&mut HashSet<u32>, usize),
    pages: &mut Vec<Page>,
) {
    let is_known = node.reference().is_some_and(|number| !seen.insert(number));
    if is_known || depth > MAX_LEVELS {
        return;
    }
    let Some(dict) = file.resolve(node).dict() else { return };
    let Page { resources, .. } = page(file, dict, inherited);
    match file.get(dict, b"Kids").list() {
        Some(kids) if seen.len() < 4 * MAX_PAGES => {
            kids.iter().for_each(|kid| collect(file, kid, &resources, (&mut *seen, depth + 1), pages));
        }
        Some(_) | None if pages.len() < MAX_PAGES => pages.push(Page { dict: dict.clone(), resources }),
        Some(_) | None => {}
    }
}

type Matrix = [f64; 6];

const UNIT: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

fn multiply(one: Matrix, other: Matrix) -> Matrix {
    let [a, b, c, d, e, f] = one;
    let [g, h, i, j, k, l] = other;
    [a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + l]
}

/// Where text is written, and what was written.
struct Pen {
    text: String,
    /// Of the page, of the line, of the next letter.
    page: Matrix,
    line: Matrix,
    place: Matrix,
    kept: Vec<Matrix>,
    leading: f64,
    size: f64,
    /// Where the last letter ended, and its height.
    end: Option<(f64, f64, f64)>,
}

impl Default for Pen {
    fn default() -> Self {
        let text = String::new();
        Self {
            text,
            page: UNIT,
            line: UNIT,
            place: UNIT,
            kept: Vec::new(),
            leading: 0.0,
            size: 1.0,
            end: None,
        }
    }
}

impl Pen {
    fn next_line(&mut self, x: f64, y: f64) {
        self.line = multiply([1.0, 0.0, 0.0, 1.0, x, y], self.line);
        self.place = self.line;
    }

    /// Writes letters where the pen stands: another height is another line, a gap is a space.
    fn write(&mut self, letters: &str, width: f64) {
        let [a, b, _, d, x, y] = multiply(self.place, self.page);
        let height = (self.size * d.abs().max(b.abs())).abs().max(0.1);
        if let Some((end, line, before)) = self.end {
            let is_new_line = (y - line).abs() > 0.5 * height.max(before);
            let is_gap = !is_new_line && (x - end > 0.2 * height || end - x > 2.0 * height);
            if is_new_line && !self.text.ends_with('\n') {
                self.text.push('\n');
            } else if is_gap && !self.text.ends_with([' ', '\n']) && !letters.starts_with(' ') {
                self.text.push(' ');
            }
        }
        if self.text.len() < MAX_TEXT {
            self.text.push_str(letters);
        }
        self.advance(width * self.size);
        self.end = Some((x + width * self.size * a, y, height));
    }

    fn advance(&mut self, by: f64) {
        self.place = multiply([1.0, 0.0, 0.0, 1.0, by, 0.0], self.place);
    }
}

type Fonts = HashMap<u32, Rc<Font>>;

/// Follows the operators of contents.
struct Drawing<'d, 'b> {
    file: &'d mut File<'b>,
    /// By the numbers of their objects.
    fonts: &'d mut Fonts,
    pen: Pen,
    words: usize,
}

impl Drawing<'_, '_> {
    fn draw_page(&mut self, page: &Page) {
        let numbers = match page.dict.get(&b"Contents"[..]) {
            Some(Object::Reference(number)) => match self.file.object(*number) {
                Some(Object::List(list)) => references(list),
                _ => vec![*number],
            },
            Some(Object::List(list)) => references(list),
            _ => Vec::new(),
        };
        let mut content = Vec::new();
        for number in numbers {
            content.extend(self.file.stream(number).unwrap_or_default());
            content.push(b'\n');
        }
        self.draw(&content, &page.resources, 0);
    }

    fn draw(&mut self, content: &[u8], resources: &Dict, depth: usize) {
        let mut reader = Reader::new(content, 0);
        let (mut operands, mut font) = (Vec::new(), None);
        while let Some(object) = reader.next(0) {
            self.words += 1;
            if self.words > MAX_WORDS {
                return;
            }
            let Object::Word(word) = object else {
                operands.push(object);
                continue;
            };
            match word.as_slice() {
                b"Tf" => font = self.choose_font(&operands, resources),
                b"Do" if depth < MAX_FORMS => {
                    self.words += FORM_WORDS;
                    self.draw_form(&operands, resources, depth);
                }
                // A picture is here as bytes.
                b"BI" => reader.at = find(content, b"EI", reader.at).map_or(content.len(), |at| at + 2),
                word => self.operate(word, &operands, font.as_deref()),
            }
            operands.clear();
        }
    }

    fn operate(&mut self, word: &[u8], operands: &[Object], font: Option<&Font>) {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        let matrix = || [0, 1, 2, 3, 4, 5].map(number);
        let pen = &mut self.pen;
        match word {
            b"q" if pen.kept.len() < 1_000 => pen.kept.push(pen.page),
            b"Q" => pen.page = pen.kept.pop().unwrap_or(pen.page),
            b"cm" => pen.page = multiply(matrix(), pen.page),
            b"BT" => (pen.line, pen.place) = (UNIT, UNIT),
            b"TL" => pen.leading = number(0),
            b"Tm" => (pen.line, pen.place) = (matrix(), matrix()),
            b"Td" => pen.next_line(number(0), number(1)),
            b"TD" => {
                pen.leading = -number(1);
                pen.next_line(number(0), number(1));
            }
            b"T*" => pen.next_line(0.0, -pen.leading),
            b"Tj" => show(pen, operands.first(), font),
            b"'" | b"\"" => {
                pen.next_line(0.0, -pen.leading);
                show(pen, operands.last(), font);
            }
            b"TJ" => {
                let Some(Object::List(parts)) = operands.first() else { return };
                for part in parts {
                    match part.number() {
                        Some(back) => pen.advance(-back / 1000.0 * pen.size),
                        None => show(pen, Some(part), font),
                    }
                }
            }
            _ => {}
        }
    }

    fn choose_font(&mut self, operands: &[Object], resources: &Dict) -> Option<Rc<Font>> {
        let [Object::Name(name), size, ..] = operands else { return None };
        self.pen.size = size.number().unwrap_or(1.0);
        let fonts = self.file.get(resources, b"Font").dict()?;
        let entry = fonts.get(name)?.clone();
        let dict = self.file.resolve(&entry).dict()?.clone();
        let Object::Reference(number) = entry else { return Some(Rc::new(Font::read(self.file, &dict))) };
        if let Some(known) = self.fonts.get(&number) {
            return Some(known.clone());
        }
        let font = Rc::new(Font::read(self.file, &dict));
        self.fonts.insert(number, font.clone());
        Some(font)
    }

    fn draw_form(&mut self, operands: &[Object], resources: &Dict, depth: usize) {
        let Some(Object::Name(name)) = operands.first() else { return };
        let objects = self.file.get(resources, b"XObject").dict();
        let Some(Object::Reference(number)) = objects.and_then(|objects| objects.get(name)) else { return };
        let number = *number;
        let Some(dict) = self.file.object(number).and_then(Object::dict).cloned() else { return };
        if !is_name(&dict, b"Subtype", b"Form") {
            return;
        }
        let Some(content) = self.file.stream(number) else { return };
        let own = self.file.get(&dict, b"Resources").dict().cloned();
        let kept = self.pen.page;
        if let Object::List(list) = self.file.get(&dict, b"Matrix")
            && let [a, b, c, d, e, f] = list.iter().filter_map(Object::number).collect::<Vec<_>>()[..]
        {
            self.pen.page = multiply([a, b, c, d, e, f], kept);
        }
        self.draw(&content, own.as_ref().unwrap_or(resources), depth + 1);
        self.pen.page = kept;
    }
}

fn show(pen: &mut Pen, text: Option<&Object>, font: Option<&Font>) {
    if let (Some(Object::Text(text)), Some(font)) = (text, font) {
        let (letters, width) = font.decode(text);
        pen.write(&letters, width);
    }
}

fn references(list: &[Object]) -> Vec<u32> {
    list.iter().filter_map(Object::reference).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file of objects; streams are deflated where `deflate` says so.
    fn pdf(objects: &[(u32, &str, Option<&str>)], deflate: bool) -> Vec<u8> {
        let mut out = b"%PDF-1.7\n".to_vec();
        for (number, dict, stream) in objects {
            writeln!(out, "{number} 0 obj").unwrap();
            match stream {
                None => write!(out, "<<{dict}>>").unwrap(),
                Some(stream) => {
                    let mut encoder =
                        flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                    encoder.write_all(stream.as_bytes()).unwrap();
                    let packed = encoder.finish().unwrap();
                    let (data, filter) = if deflate {
                        (packed, "/Filter/FlateDecode")
                    } else {
                        (stream.as_bytes().to_vec(), "")
                    };
                    write!(out, "<<{dict}{filter}/Length {}>>\nstream\n", data.len()).unwrap();
                    out.extend(data);
                    out.extend(b"\nendstream");
                }
            }
            out.extend(b"\nendobj\n");
        }
        out.extend(b"trailer\n<</Root 1 0 R>>\n%%EOF");
        out
    }

    const CONTENT: &str = "BT /F1 12 Tf 72 700 Td (Hello \\(world\\)) Tj 0 -14 Td [(Sec) 20 (ond) -400 (line)] TJ ET \
        q 1 0 0 1 0 -100 cm BT /F2 10 Tf 1 0 0 1 72 700 Tm <00010002> Tj ET Q /X1 Do";
    const MAP: &str = "1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0001> <00C4> endbfchar \
        1 beginbfrange <0002> <0004> <0062> endbfrange";

    fn sample(deflate: bool) -> Vec<u8> {
        let page = "/Type/Page/Parent 2 0 R/Contents [4 0 R]/Resources <</Font<</F1 5 0 R/F2 6 0 R>>/XObject<</X1 8 0 R>>>>";
        pdf(
            &[
                (1, "/Type/Catalog/Pages 2 0 R", None),
                (2, "/Type/Pages/Kids[3 0 R 2 0 R 9 0 R]/Count 2", None),
                (3, page, None),
                (4, "", Some(CONTENT)),
                (5, "/Type/Font/Subtype/Type1/FirstChar 32/Widths[250]", None),
                (6, "/Type/Font/Subtype/Type0/ToUnicode 7 0 R", None),
                (7, "", Some(MAP)),
                (
                    8,
                    "/Subtype/Form/Resources<</Font<</F1 5 0 R>>>>",
                    Some("BT /F1 9 Tf 0 -300 Td (In a form) Tj ET"),
                ),
                (9, "/Type/Page/Parent 2 0 R", None),
            ],
            deflate,
        )
    }

    #[test]
    fn the_text_of_pages_is_read_in_order() {
        for deflate in [false, true] {
            let text = text(&sample(deflate)).unwrap();
            let expected =
                "PDF with 2 pages.\n\n## Page 1\nHello (world)\nSecond line\nÄb\nIn a form\n\n## Page 2\n\n";
            assert_eq!(text, expected, "{deflate}");
        }
    }

    #[test]
    fn files_without_text_get_a_sentence() {
        for (file, words) in [
            (b"%PDF-1.4\ntrailer <</Encrypt 3 0 R>>".to_vec(), "encrypted"),
            (b"%PDF-1.4\n% it does not say /Encrypt".to_vec(), "no text"),
            (b"%PDF-1.4\n".to_vec(), "no text"),
            (pdf(&[(1, "/Type/Page", None)], false), "no text"),
        ] {
            assert!(text(&file).unwrap_err().contains(words), "{words}");
        }
    }

    /// Bytes that are changed or cut at random end in a text or a sentence.
    #[test]
    fn broken_files_end_nothing() {
        let whole = sample(true);
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random() % 8 {
                let at = random() % bytes.len();
                bytes[at] = (random() % 256) as u8;
            }
            bytes.truncate(1 + random() % bytes.len());
            let _ = text(&bytes);
        }
        let levels: String = (2..20_000)
            .map(|level| format!("{level} 0 obj\n<</Kids[{} 0 R]>>\nendobj\n", level + 1))
            .collect();
        let tall = format!("%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n{levels}");
        assert!(text(tall.as_bytes()).is_err());
        let deep = [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"[".repeat(100_000)].concat();
        let _ = text(&deep);
    }
}
