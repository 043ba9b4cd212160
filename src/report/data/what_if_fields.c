/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/what_if_fields.h"

#define WHAT_IF_ROW(kind, member, key, when, ...)                                                  \
    LH_FIELD_ROW(kind, LhWhatIfValues, member, key, when, __VA_ARGS__)

#define WHAT_IF_OF                                                                                 \
    WHAT_IF_ROW(STRING, of, "of", ALWAYS,                                                          \
                .description = "compute, latency, host, or kinds of links, joined by +."),         \
        WHAT_IF_ROW(DOUBLE, critical_path_fraction, "critical_path_fraction", ALWAYS, .max = -1,   \
                    .description = "Fraction of the critical path spent on it.")

#define WHAT_IF_SAVED                                                                              \
    WHAT_IF_ROW(DOUBLE, saved_fraction, "saved_fraction", ALWAYS,                                  \
                .description =                                                                     \
                    "Saving as a fraction of the makespan; negative if the run takes longer."),    \
        WHAT_IF_ROW(DOUBLE, saved_fraction_low, "saved_fraction_low", ALWAYS,                      \
                    .description = "Lower bound of the saving: it is not known how much protocol " \
                                   "time of measured collectives scales with links."),             \
        WHAT_IF_ROW(DOUBLE, saved_fraction_high, "saved_fraction_high", ALWAYS,                    \
                    .description = "Upper bound of the saving."),                                  \
        WHAT_IF_ROW(                                                                               \
            STRING, edit, "edit", OR_NULL,                                                         \
            .description =                                                                         \
                "Edit of the topology file with the same effect; null unless it is of links.")

const LhField lh_what_if_fields[] = {
    WHAT_IF_OF,
    LH_FIELD_SECONDS_ROW(INT, LhWhatIfValues, makespan_ps, "makespan_s", ALWAYS, .max = -1,
                         .description = "Makespan with the faster resource."),
    WHAT_IF_SAVED,
    { .name = NULL },
};

const LhField lh_what_if_share_fields[] = { WHAT_IF_OF, WHAT_IF_SAVED, { .name = NULL } };

GArray *
lh_what_if_values(const LhTopology *topology, const LhBottleneck *bound)
{
    GArray *values = g_array_new(FALSE, FALSE, sizeof(LhWhatIfValues));

    for (guint i = 0; bound != NULL && i < bound->what_ifs->len; i++) {
        const LhWhatIf *what_if = &g_array_index(bound->what_ifs, LhWhatIf, i);
        const LhWhatIfValues v = {
            .of = lh_resource_name(what_if->kind, what_if->tiers),
            .critical_path_fraction = (double)what_if->path_ps / (double)MAX(bound->makespan_ps, 1),
            .makespan_ps = what_if->makespan_ps,
            .saved_fraction = lh_what_if_share(bound, what_if),
            .saved_fraction_low = what_if->least_share,
            .saved_fraction_high = what_if->most_share,
            .edit = lh_what_if_edit(topology, what_if),
        };

        g_array_append_val(values, v);
    }
    return values;
}
