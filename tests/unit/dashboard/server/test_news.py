"""Streams of news: the versions at once, then each change, and a comment when all is quiet."""

import asyncio

from whenabouts_cloud.dashboard.server import news as news_module
from whenabouts_cloud.dashboard.server.news import QUIET_S, News


class Scene:
    """News of a version that the test changes, at a time that the test sets."""

    def __init__(self):
        self.version, self.now_s = {"landing": 1}, 0.0
        self.news = News(lambda: dict(self.version), lambda: self.now_s)

    async def first(self, stream):
        return [await anext(stream), await anext(stream)]


def run(play):
    """Play a scene in its event loop."""

    async def played():
        scene = Scene()
        await asyncio.wait_for(play(scene, scene.news.stream()), 30)

    asyncio.run(played())


def test_a_stream_begins_with_the_present_versions():
    """So a page that connects again misses nothing."""

    async def play(scene, stream):
        assert await scene.first(stream) == ["retry: 1000\n\n", 'event: news\ndata: {"landing": 1}\n\n']

    run(play)


def test_a_change_is_told_once():
    """The next text is that of the next change."""

    async def play(scene, stream):
        await scene.first(stream)
        for version in (2, 3):
            scene.version["landing"] = version
            assert await anext(stream) == f'event: news\ndata: {{"landing": {version}}}\n\n'

    run(play)


def test_a_quiet_stream_sends_comments(monkeypatch):
    """One when QUIET_S have passed."""
    monkeypatch.setattr(news_module, "EVERY_S", 0.001)

    async def play(scene, stream):
        await scene.first(stream)
        scene.now_s = QUIET_S
        assert await anext(stream) == ": still here\n\n"

    run(play)


def test_a_stream_ends_with_the_server():
    """It is counted only while it is open."""

    async def play(scene, stream):
        await scene.first(stream)
        assert scene.news.open == 1
        scene.news.ended.set()
        assert [text async for text in stream] == []
        assert scene.news.open == 0

    run(play)
