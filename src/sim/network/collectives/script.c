/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/collectives/script.h"

#include "sim/network/collectives/rings.h"

uint32_t
lh_script_add(LhScript *script, LhScriptKind kind, uint32_t peer, uint64_t bytes,
              const uint32_t *after, uint32_t after_count)
{
    uint32_t known[LH_RINGS_MAX + 1];
    LhScriptMessage message = { .kind = kind,
                                .peer = (uint32_t)lh_group_member(
                                    lh_collective_group(script->collective), peer),
                                .bytes = bytes,
                                .after = known };

    g_assert(after_count <= G_N_ELEMENTS(known));
    for (uint32_t i = 0; i < after_count; i++)
        if (after[i] != LH_SCRIPT_NONE)
            known[message.after_count++] = after[i];
    script->tell(script->data, &message);
    return script->count++;
}

void
lh_script_join(LhScript *script)
{
    lh_script_add(script, LH_SCRIPT_JOIN, 0, 0, NULL, 0);
}
