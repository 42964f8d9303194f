"""What a segment begins like: every row of the table by sentences that models say, and ordinary text by none."""

from __future__ import annotations

from loop_core.turn.continuation import OpeningKind, find_opening
from tests.scenes.rows import each_row

SAID: list[tuple[OpeningKind, str, tuple[str, ...]]] = [
    (OpeningKind.CHATTER, "English", (
        "Sure, here is the rest:", "Certainly! Continuing from where I left off", "Of course.", "OK:",
        "Here's the continuation of the story", "Here is the remaining part", "Continuing where it stopped:",
        "I'll continue from there.", "I apologize for the confusion.", "My apologies for the interruption",
        "Sorry about that, it got cut.", "**Sure!** Here it comes", "> Understood.", "Thanks for your patience",
        "I\u2019ll pick up where I stopped", "(continued)",
    )),
    (OpeningKind.REFUSAL, "English", (
        "I'm sorry, but I can't continue.", "I\u2019m afraid I have no text.", "I cannot do that",
        "I am unable to help",
        "As an AI language model, I", "As a large language model", "Unfortunately, I do not have the text",
        "It looks like your message was cut off", "Your message was cut off", "Could you please provide the text?",
        "I don't have any previous response", "Sorry, I can't",
    )),
    (OpeningKind.RESTART, "English", (
        "Let me start over.", "I will begin again from the beginning", "Starting over:", "Here is the complete text:",
        "Here's the full answer",
    )),
    (OpeningKind.CHATTER, "German", ("Natürlich! Hier ist der Rest:", "Hier ist die Fortsetzung:", "Ich fahre fort:")),
    (OpeningKind.REFUSAL, "German",
     ("Es tut mir leid, aber", "Leider kann ich", "Als KI-Modell", "Ich kann das nicht")),
    (OpeningKind.RESTART, "German", ("Ich beginne noch einmal von vorn.", "Hier ist der vollständige Text:")),
    (OpeningKind.CHATTER, "French", ("Bien sûr, voici la suite :", "Voici la suite", "D'accord.", "Je continue :")),
    (OpeningKind.REFUSAL, "French", ("Je suis désolé, mais", "Malheureusement", "En tant qu'IA", "Je ne peux pas")),
    (OpeningKind.RESTART, "French", ("Je recommence depuis le début.", "Voici la version complète")),
    (OpeningKind.CHATTER, "Spanish", ("¡Claro! Aquí está el resto:", "Por supuesto:", "Continúo:")),
    (OpeningKind.REFUSAL, "Spanish", ("Lo siento, pero", "No puedo continuar", "Como modelo de lenguaje")),
    (OpeningKind.CHATTER, "Italian", ("Certo, ecco il resto:", "Ecco il seguito", "Continuo da dove")),
    (OpeningKind.REFUSAL, "Italian", ("Mi dispiace, ma", "Purtroppo", "Non posso continuare")),
    (OpeningKind.CHATTER, "Portuguese", ("Com certeza! Segue", "Segue o restante", "Aqui está o resto")),
    (OpeningKind.REFUSAL, "Portuguese", ("Sinto muito, mas", "Desculpe, mas não posso", "Infelizmente")),
    (OpeningKind.CHATTER, "Dutch", ("Natuurlijk, hier", "Hier is het vervolg")),
    (OpeningKind.REFUSAL, "Dutch", ("Het spijt me", "Helaas kan ik", "Ik kan dat niet")),
    (OpeningKind.CHATTER, "Russian", ("Конечно, вот", "Вот продолжение:", "Продолжаю")),
    (OpeningKind.REFUSAL, "Russian", ("К сожалению, я", "Извините, но", "Я не могу")),
    (OpeningKind.CHATTER, "Chinese", ("好的，以下是剩余部分：", "当然！", "继续：", "以下是续写")),
    (OpeningKind.REFUSAL, "Chinese", ("很抱歉，我无法继续", "对不起", "作为一个AI语言模型", "我无法")),
    (OpeningKind.RESTART, "Chinese", ("让我重新开始", "我从头开始")),
    (OpeningKind.CHATTER, "Japanese", ("はい、続きです", "もちろんです", "以下が続きです")),
    (OpeningKind.REFUSAL, "Japanese", ("申し訳ありませんが", "すみません", "AIとして")),
    (OpeningKind.CHATTER, "Korean", ("네, 계속하겠습니다", "물론이죠", "계속해서")),
    (OpeningKind.REFUSAL, "Korean", ("죄송하지만", "안타깝게도", "저는 AI로서")),
]


@each_row(("kind", "language", "said"), [
    (kind, language, said) for kind, language, every in SAID for said in every
])
def test_what_models_begin_with_is_told(kind: OpeningKind, language: str, said: str) -> None:
    row = find_opening(said)
    assert row is not None
    assert (row.kind, row.language) == (kind, language)


@each_row("text", [
    "", "   ", " sleep under the tree.", "000 people live there.", "keeper", "return width * height\n", "| 3 | 4 |\n",
    "# Chapter two\n\nThe house was old.", "{\"a\": 1}", "- Surely nobody knew.", "The sorry state of it all",
    "He said: I'm sorry.", "Okayama is a city in Japan.", "Rightly so.", "Continental drift", "Here the road ends.",
    "Let me tell you a story.", "Klarinette und Geige", "继承", "certaines personnes",
])
def test_ordinary_text_begins_like_no_row(text: str) -> None:
    assert find_opening(text) is None
