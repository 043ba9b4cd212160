/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefixes that other programs put before the lines of a log: mpirun --tag-output writes
 * "[1,0]<stdout>:", srun --label "0: ", mpiexec -prepend-rank "[0] ", torchrun "[rank0]:", pdsh
 * "node1: ", and container logs the time. Left out: prefixes that contain spaces.
 */
#include "import/cluster/readers_private.h"

#include <string.h>

#define PREFIXES_MAX 4 /* per line */
#define BRACKET_MAX 80 /* length of a rank or host name */

static const char *
skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static bool
goes_on_with(const char *at, const char *end, const char *text)
{
    const gsize length = strlen(text);

    return (gsize)(end - at) >= length && memcmp(at, text, length) == 0;
}

/* Skips "[1,0]<stdout>:", "[host:0]", "[rank0]:"; returns @at if there is none. */
static const char *
skip_bracket(const char *at, const char *end)
{
    static const char *const streams[] = { "<stdout>", "<stderr>", "<stddiag>" };
    const char *to = at + 1;
    bool digit = false;

    if (at == end || *at != '[')
        return at;
    for (; to < end && *to != ']'; to++) {
        if (g_ascii_isspace(*to) || *to == '[' || to - at > BRACKET_MAX)
            return at;
        digit = digit || g_ascii_isdigit(*to);
    }
    if (to == end || !digit)
        return at;
    to++;
    for (gsize i = 0; i < G_N_ELEMENTS(streams); i++) {
        if (goes_on_with(to, end, streams[i]))
            to += strlen(streams[i]);
    }
    return to < end && *to == ':' ? to + 1 : to;
}

/* Skips "0: " or "node1: ". A name counts only before what the known tools begin lines with. */
static const char *
skip_label(const char *at, const char *end)
{
    const char *to = at, *next;
    bool digits = true;

    while (to < end && (g_ascii_isalnum(*to) || strchr("._-/", *to) != NULL)) {
        digits = digits && g_ascii_isdigit(*to);
        to++;
    }
    if (to == at || to == end || *to != ':' || (to + 1 < end && !g_ascii_isspace(to[1])))
        return at;
    next = skip_blanks(to + 1, end);
    if (digits || (next < end && (*next == '#' || g_ascii_isdigit(*next))) ||
        goes_on_with(next, end, "GPU") || goes_on_with(next, end, "NIC"))
        return to + 1;
    return at;
}

/* Skips "2024-05-01T12:00:00.123Z ", or with a space instead of T. */
static const char *
skip_time(const char *at, const char *end)
{
    static const char form[] = "0000-00-00T00:00:00";

    if ((gsize)(end - at) < sizeof(form))
        return at;
    for (gsize i = 0; form[i] != '\0'; i++) {
        const bool fits = form[i] == '0'   ? g_ascii_isdigit(at[i])
                          : form[i] == 'T' ? at[i] == 'T' || at[i] == ' '
                                           : at[i] == form[i];

        if (!fits)
            return at;
    }
    at += sizeof(form) - 1;
    while (at < end && !g_ascii_isspace(*at))
        at++;
    return at;
}

const char *
lh_tool_after_prefix(const char *begin, const char *end)
{
    static const char *(*const skips[])(const char *, const char *) = { skip_time, skip_bracket,
                                                                        skip_label };
    const char *behind = begin;

    for (guint found = 0; found < PREFIXES_MAX; found++) {
        const char *const at = skip_blanks(behind, end);
        const char *to = at;

        for (gsize i = 0; i < G_N_ELEMENTS(skips) && to == at; i++)
            to = skips[i](at, end);
        if (to == at)
            break;
        behind = to;
    }
    return behind;
}
