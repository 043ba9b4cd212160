/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <glib.h>
#include <unistd.h>

static bool
has_colours(int fd)
{
    const char *no_color = g_getenv("NO_COLOR");
    const char *terminal = g_getenv("TERM");

    return isatty(fd) != 0 && (no_color == NULL || no_color[0] == '\0') &&
           g_strcmp0(terminal, "dumb") != 0;
}

LhColours
lh_colours(int fd)
{
    if (!has_colours(fd))
        return (LhColours){ "", "", "", "" };
    return (LhColours){
        .heading = "\033[1m", .option = "\033[36m", .error = "\033[1;31m", .end = "\033[0m"
    };
}
