/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/proven.h"

#include "base/error.h"

#define UNPROVEN " (NOT PROVEN)" /* suffix of an unproven program that is used anyway */

static void
finding_clear(gpointer data)
{
    LhProofFinding *finding = data;

    g_free(finding->message);
}

LhProven *
lh_proven_new(const char *name)
{
    LhProven *proven = g_new0(LhProven, 1);

    proven->name = name;
    proven->proven = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    proven->unproven = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    proven->refused = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    proven->findings = g_array_new(FALSE, FALSE, sizeof(LhProofFinding));
    g_array_set_clear_func(proven->findings, finding_clear);
    proven->unchecked = g_ptr_array_new();
    return proven;
}

void
lh_proven_free(LhProven *proven)
{
    if (proven == NULL)
        return;
    g_array_unref(proven->proven);
    g_array_unref(proven->unproven);
    g_array_unref(proven->refused);
    g_array_unref(proven->findings);
    g_ptr_array_unref(proven->unchecked);
    g_free(proven->not_queued);
    g_free(proven->refusal);
    g_free(proven);
}

void
lh_proven_add(LhProven *proven, const LhProgram *program, const LhVerdict *verdict,
              const char *what)
{
    const uint32_t ranks = lh_program_ranks(program);

    proven->programs++;
    proven->ops += verdict->ops;
    proven->messages += verdict->messages;
    proven->orders += verdict->orders_checked;
    proven->queued += verdict->one_queue;
    if (proven->not_queued == NULL && verdict->queue_cycle != NULL)
        proven->not_queued = g_strdup_printf("%u rank%s%s: %s", ranks, ranks == 1 ? "" : "s", what,
                                             verdict->queue_cycle);
    proven->pairs += verdict->pairs_checked;
    for (uint32_t rank = 0; rank < verdict->ranks && verdict->bytes_sent != NULL; rank++)
        proven->bytes += verdict->bytes_sent[rank];
    for (uint32_t rank = 0; rank < verdict->ranks && verdict->flops != NULL; rank++)
        proven->flops += verdict->flops[rank];
    for (guint i = 0; i < verdict->unchecked->len; i++) {
        if (!g_ptr_array_find(proven->unchecked, verdict->unchecked->pdata[i], NULL))
            g_ptr_array_add(proven->unchecked, verdict->unchecked->pdata[i]);
    }
    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *found = &g_array_index(verdict->findings, LhFinding, i);
        const LhProofFinding finding = {
            program->params.pass,
            g_strdup_printf("%u rank%s%s: %s", ranks, ranks == 1 ? "" : "s", what, found->message),
        };

        g_array_append_val(proven->findings, finding);
    }
}

LhProven *
lh_prove_program(const char *name, const LhProgram *program)
{
    LhProven *proven = lh_proven_new(name);
    const uint64_t ranks = lh_program_ranks(program);
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    lh_proven_add(proven, program, verdict, "");
    g_array_append_val(*(proven->findings->len == 0 ? &proven->proven : &proven->unproven), ranks);
    return proven;
}

bool
lh_prove_setup(const LhSetup *setup, LhProvePurpose purpose, GError **error)
{
    static const struct {
        const char *done, *does;
        unsigned refused; /* bit set of LhFindingKind that are always refused */
    } purposes[] = {
        [LH_PROVE_TO_SIMULATE] = { "simulated", "simulates", 1u << LH_FINDING_MALFORMED },
        [LH_PROVE_TO_RUN] = { "run", "runs",
                              1u << LH_FINDING_MALFORMED | 1u << LH_FINDING_MEMORY |
                                  1u << LH_FINDING_UNMATCHED },
    };
    LhProgram *program = setup->program;
    g_autoptr(LhVerdict) verdict = program != NULL ? lh_verify(program) : NULL;
    const LhFinding *first;
    unsigned kinds = 0;
    bool may_go_on;

    if (program == NULL || verdict->findings->len == 0)
        return true;
    first = &g_array_index(verdict->findings, LhFinding, 0);
    for (guint i = 0; i < verdict->findings->len; i++)
        kinds |= 1u << g_array_index(verdict->findings, LhFinding, i).kind;
    may_go_on = (kinds & purposes[purpose].refused) == 0;
    if (may_go_on && setup->scenario->unproven) {
        char *name = g_strconcat(program->name, UNPROVEN, NULL);

        g_free(program->name);
        program->name = name;
        return true;
    }
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "%s is not proven, so it is not %s: %s (%" G_GUINT64_FORMAT
                " finding%s; see longhaul verify)%s%s%s",
                program->name, purposes[purpose].done, first->message, verdict->findings_total,
                verdict->findings_total == 1 ? "" : "s", may_go_on ? "; --unproven " : "",
                may_go_on ? purposes[purpose].does : "", may_go_on ? " it anyway" : "");
    return false;
}

bool
lh_prove_is_unproven(const LhProgram *program)
{
    return g_str_has_suffix(program->name, UNPROVEN);
}
