//! docs/protocols/studio.md names every route, and the routes that it names exist.

#[test]
fn every_route_is_on_the_page() {
    let page = include_str!("../../../../docs/protocols/studio.md");
    let routes = include_str!("../../src/routes.rs");
    let named = routes.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next());
    let mut count = 0;
    for route in named.filter(|route| *route != "/oauth/callback") {
        let shown = route
            .replace("{tab}", "ID")
            .replace("{number}", "N")
            .replace("{message}", "MESSAGE")
            .replace("{name}", "NAME")
            .replace("{id}", "ID");
        assert!(page.contains(&format!(" /api{shown}")), "/api{shown} is not on the page");
        count += 1;
    }
    assert!(count > 20);
}
