//! Whole screens, key by key.

mod boxes;
mod picture;

#[test]
fn look() {
    for (name, shown) in boxes::all() {
        for (width, height) in [(80, 24), (60, 15), (120, 40), (200, 50)] {
            if width != 80 && !["sick", "mig"].contains(&name) {
                continue;
            }
            let mut ui = picture::ui();
            let buf = picture::draw(&mut ui, &shown.view(), width, height);
            println!("=== {name} {width}x{height}\n{}", picture::text(&buf));
        }
    }
}
