/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what may run: the mode of a command, and its status.
 */
#include "base/shell/shell_private.h"

LhShellMode
lh_shell_mode_after(const LhShell *sh, LhShellStatus wanted)
{
    if (sh->mode == LH_SHELL_SKIPS || sh->ended ||
        (sh->status != LH_SHELL_OPEN && sh->status != wanted))
        return LH_SHELL_SKIPS;
    return sh->status == LH_SHELL_OPEN ? LH_SHELL_MAY_RUN : sh->mode;
}

LhShellMode
lh_shell_enter_mode(LhShell *sh, LhShellMode mode)
{
    const LhShellMode before = sh->mode;

    if (mode == LH_SHELL_MAY_RUN && before != LH_SHELL_MAY_RUN) {
        sh->open_line = sh->status_line;
        sh->open_variable = sh->status_variable;
    }
    sh->mode = mode;
    return before;
}

void
lh_shell_leave_open(LhShell *sh, guint line, const char *variable)
{
    sh->status = LH_SHELL_OPEN;
    sh->status_line = line;
    sh->status_variable = g_intern_string(variable != NULL ? variable : "");
}
