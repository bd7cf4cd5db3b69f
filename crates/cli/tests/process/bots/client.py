"""Discord libraries from PyPI, as they come, with their base URL at Tidegate: one logs in and makes 32 calls at once.
Arguments: the library, the base URL, a guild and a channel of it. It says who it is and what came of each call."""
import asyncio
import json
import sys

library, base, guild, channel = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
TOKEN = "a.token.that-is-not-used"


async def calls(message, role, text_channel, look):
    """Makes the calls, all at once; what each gave, or its error."""
    asked = [message(f"message {n}") for n in range(12)]
    asked += [role(f"role {n}") for n in range(8)]
    asked += [text_channel(f"channel-{n}") for n in range(8)]
    asked += [look(guild) for n in range(4)]
    return await asyncio.gather(*asked, return_exceptions=True)


async def discord_py():
    import discord
    from discord.http import handle_message_parameters

    discord.http.Route.BASE = base
    async with discord.Client(intents=discord.Intents.none()) as client:
        await client.login(TOKEN)
        name = client.application.name
        await client.http.get_bot_gateway()

        async def message(text):
            with handle_message_parameters(content=text) as parameters:
                return await client.http.send_message(channel, params=parameters)

        return name, await calls(
            message,
            lambda name: client.http.create_role(guild, name=name),
            lambda name: client.http.create_channel(guild, 0, name=name),
            client.http.get_guild,
        )


async def nextcord():
    import nextcord

    nextcord.http.Route.BASE = base
    client = nextcord.Client(intents=nextcord.Intents.none())
    await client.login(TOKEN)
    name = (await client.application_info()).name
    await client.http.get_bot_gateway()
    answers = await calls(
        lambda text: client.http.send_message(channel, text),
        lambda name: client.http.create_role(guild, name=name),
        lambda name: client.http.create_channel(guild, 0, name=name),
        client.http.get_guild,
    )
    await client.close()
    return name, answers


async def hikari():
    import hikari

    rest = hikari.RESTApp(url=base)
    await rest.start()
    async with rest.acquire(TOKEN, hikari.TokenType.BOT) as client:
        await client.fetch_my_user()
        name = (await client.fetch_application()).name
        await client.fetch_gateway_bot_info()
        answers = await calls(
            lambda text: client.create_message(channel, text),
            lambda name: client.create_role(guild, name=name),
            lambda name: client.create_guild_text_channel(guild, name),
            client.fetch_guild,
        )
    await rest.close()
    return name, [answer if isinstance(answer, Exception) else {"id": answer.id} for answer in answers]


name, answers = asyncio.run({"discord.py": discord_py, "nextcord": nextcord, "hikari": hikari}[library]())
errors = [repr(answer) for answer in answers if isinstance(answer, BaseException)]
made = sum(1 for answer in answers if not isinstance(answer, BaseException) and answer["id"])
print(json.dumps({"name": name, "made": made, "errors": errors}))
