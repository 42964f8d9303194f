"""Makes the animated tour at the top of the README: the real app over the sample sessions, a caption for each key.

    python docs/tour_animation.py                   writes docs/images/tour.webp
    python docs/tour_animation.py --to /tmp/tour    into another folder, with each frame as a PNG

Needs what docs/screenshots.py needs (Chromium and Fira Code), and Pillow with WebP (`pip install pillow`), which the
project itself does not use.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from html import escape
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageColor
from screenshots import FOLDER, IMAGES, draw, find_browser, leave_home, press, screen_svg

from inspector.tui.app import LoopInspector

SIZE = (100, 26)
SCALE = 9 / 12.2
"""Nine pixels a cell, see docs/screenshots.py."""
GROUND = "#12161c"
SHARES = (0.35, 0.7, 1.0)
SECONDS = 3.0


class Frame(NamedTuple):
    """One picture of the tour."""

    keys: tuple[str, ...]
    label: str
    """The keys as they stand in the caption."""
    caption: str


FRAMES = (
    Frame((), "inspector sample_sessions", "every turn of a folder, the worst first"),
    Frame(("enter",), "enter", "it opens where the provider cut a tool call; the agent ran it all the same"),
    Frame(("4",), "4", "what arrived of the call, and where the parser stopped; it is held"),
    Frame(("3", "."), "3 .", "the proof: the bytes that the stop reason was read from"),
    Frame(("!", "V"), "! V", "the next turn that needs attention, and its whole verdict with the advice"),
    Frame(("escape", "F"), "F", "the advice is run: with 5 continuations this recording completes"),
    Frame(("R", "d"), "R d", "both runs side by side, from their first difference"),
    Frame(("escape", "u"), "u", "what would have been enough: ▾ smallest max_tokens, ◆ fewest output tokens"),
)
CAPTION = """<div style="position:absolute; top:0; left:90px; right:24px; height:41px; display:flex; align-items:center;
gap:14px; font:19px 'Fira Code',monospace; color:#f4f4f0; white-space:pre"><b style="background:#e0af5c; color:#12161c;
padding:1px 9px; border-radius:5px">{label}</b><span>{caption}</span><span style="margin-left:auto;
color:#8b97a8">{number}/{count}</span></div>"""


async def screens() -> list[str]:
    """The screen as SVG after the keys of each frame, in one session of the app."""
    app = LoopInspector((FOLDER,))
    pictures = []
    async with app.run_test(size=SIZE) as pilot:
        for frame in FRAMES:
            await press(app, pilot, frame.keys)
            pictures.append(screen_svg(app, title=" "))
    return pictures


def palette(svgs: list[str]) -> Image.Image:
    """The colours of the screens, each also mixed with the background for the edges of letters."""
    texts = {colour.lower() for svg in svgs for colour in re.findall(r"#[0-9a-fA-F]{6}", svg + CAPTION)}
    ground = ImageColor.getrgb(GROUND)
    colours = [round(base + (value - base) * share) for text in sorted(texts) for share in SHARES
               for base, value in zip(ground, ImageColor.getrgb(text), strict=True)]
    image = Image.new("P", (1, 1))
    image.putpalette(colours)
    return image


def main() -> None:
    """Writes the animation, and with another folder its frames."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path)
    folder = parser.parse_args().to
    browser = find_browser()
    leave_home()
    target = (folder or IMAGES).resolve()
    target.mkdir(parents=True, exist_ok=True)
    svgs = asyncio.run(screens())
    colours = palette(svgs)
    frames = []
    with tempfile.TemporaryDirectory() as drawn:
        for number, (frame, svg) in enumerate(zip(FRAMES, svgs, strict=True), 1):
            above = CAPTION.format(label=escape(frame.label), caption=escape(frame.caption), number=number,
                                   count=len(FRAMES))
            draw(svg, Path(drawn, "frame.png"), browser, SCALE, above=above)
            with Image.open(Path(drawn, "frame.png")) as picture:
                flat = Image.new("RGB", picture.size, GROUND)
                flat.paste(picture, mask=picture.getchannel("A") if "A" in picture.getbands() else None)
            frames.append(flat.quantize(palette=colours, dither=Image.Dither.NONE).convert("RGB"))
    for number, frame_picture in enumerate(frames if folder else [], 1):
        frame_picture.save(target / f"tour-{number}.png")
    frames[0].save(target / "tour.webp", save_all=True, append_images=frames[1:], duration=int(SECONDS * 1_000),
                   loop=0, lossless=True, quality=100, method=6, minimize_size=True)


if __name__ == "__main__":
    main()
