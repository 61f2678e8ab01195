//! Growth as a small picture: one bar for each size, a line where the wanted value is. `make bench` writes them to
//! `docs/charts`.

use std::fmt::Write as _;
use std::path::Path;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 170.0;
const BAR: f64 = 56.0;
/// The part of the height that bars may fill.
const FULL: f64 = 100.0;

pub(crate) struct Chart {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    points: Vec<Point>,
}

struct Point {
    size: usize,
    value: f64,
    wanted: f64,
}

impl Chart {
    pub(crate) fn new(name: &'static str, title: &'static str, unit: &'static str) -> Self {
        Self { name, title, unit, points: Vec::new() }
    }

    pub(crate) fn point(&mut self, size: usize, value: f64, wanted: f64) {
        self.points.push(Point { size, value, wanted });
    }

    pub(crate) fn write(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/charts");
        std::fs::create_dir_all(&folder).expect("the folder of the charts");
        std::fs::write(folder.join(format!("{}.svg", self.name)), self.drawn()).expect("a chart");
    }

    fn drawn(&self) -> String {
        let Self { title, unit, points, .. } = self;
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let most =
            points.iter().flat_map(|it| [finite(it.value), finite(it.wanted)]).flatten().fold(0.0, f64::max);
        let height = |value: f64| value / most.max(f64::MIN_POSITIVE) * FULL;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <title>{title}</title>\n\
             <style>text{{fill:#333}}.bar{{fill:#3b6fb5}}.wanted{{stroke:#b5533b;stroke-width:2}}\
             @media(prefers-color-scheme:dark){{text{{fill:#ccc}}.bar{{fill:#7aa7e0}}.wanted{{stroke:#e08f7a}}}}</style>\n\
             <text x=\"8\" y=\"16\" font-size=\"12\">{title} ({unit})</text>\n"
        );
        let step = WIDTH / points.len().max(1) as f64;
        for (number, Point { size, value, wanted }) in points.iter().enumerate() {
            let left = step * number as f64 + (step - BAR) / 2.0;
            let (top, middle) = (HEIGHT - 24.0 - height(*value), left + BAR / 2.0);
            // Writing to a string cannot fail.
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{left:.0}\" y=\"{top:.1}\" width=\"{BAR}\" height=\"{:.1}\"/>\
                 <text x=\"{middle:.0}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.1}</text>\
                 <text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{size}</text>",
                height(*value),
                top - 4.0,
                HEIGHT - 8.0,
            );
            if wanted.is_finite() {
                let line = HEIGHT - 24.0 - height(*wanted);
                let (from, to) = (left - 8.0, left + BAR + 8.0);
                let _ = writeln!(
                    svg,
                    "<line class=\"wanted\" x1=\"{from:.0}\" x2=\"{to:.0}\" y1=\"{line:.1}\" y2=\"{line:.1}\"/>"
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}
