/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_reader.h"

#include "base/error.h"

#include <stdarg.h>

bool
lh_text_fail(const LhTextReader *r, const char *place, const char *format, ...)
{
    g_autofree char *message = NULL;
    guint column = 1;
    va_list args;

    for (const char *at = r->line_start; at < place; at++)
        column += ((unsigned char)*at & 0xc0) != 0x80;
    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    g_set_error(r->error, LH_ERROR, LH_ERROR_INPUT, "%s:%u:%u: error: %s", r->file, r->line, column,
                message);
    return false;
}
