/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles scale links by the ratio of measured to predicted rates of the same measurement
 * (scenario/profile_links.h), for every shipped topology file.
 */
#include "base/files/data_files.h"
#include "run_tests.h"
#include "scenario/profile_links.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/sends.h"

#include <string.h>

static const char *const class_names[] = { "nvlink", "pcie", "nic" };

/* Bandwidth of two ranks alone whose route is over links of @tier; 0: there are none. */
static double
reached_alone(const LhTopology *t, int tier)
{
    const uint32_t nodes = t->nics_per_node > 0 && t->max_nodes != 1 ? 2 : 1;
    LhNetwork network;
    LhRoute route;

    ck_assert(lh_network_init(&network, t, nodes, nodes * (uint32_t)t->gpus_per_node, NULL, NULL));
    for (uint32_t r = 1; r < network.ranks; r++) {
        lh_network_route(&network, 0, r, &route);
        if (MIN(route.tier, LH_TIER_NIC) == tier)
            return lh_network_route_bandwidth(&network, &route);
    }
    return 0;
}

/* A profile of all classes of links of @t, measured at @factor times the file's prediction. */
static LhProfile *
profile_of(const LhTopology *t, double factor)
{
    const LhLinkClass *classes[] = { &t->nvlink, &t->pcie, &t->nic };
    g_autoptr(GString) text = g_string_new("{\"schema\": \"longhaul.profile/2\", \"name\": \"p\", "
                                           "\"source\": \"test\"");
    g_autoptr(GError) error = NULL;
    LhProfile *profile;

    for (int tier = 0; tier < (int)G_N_ELEMENTS(classes); tier++) {
        g_autofree char *latency = lh_format_time(classes[tier]->latency_ps);

        if (reached_alone(t, tier) > 0)
            g_string_append_printf(text,
                                   ", \"%s\": {\"bandwidth\": \"%.3fB/s\", \"latency\": \"%s\", "
                                   "\"ctas\": %" G_GUINT64_FORMAT
                                   ", \"provenance\": \"measured\", \"source\": \"test\"}",
                                   class_names[tier], factor * reached_alone(t, tier), latency,
                                   classes[tier]->ctas);
    }
    g_string_append_c(text, '}');
    profile = lh_profile_parse("p.json", text->str, text->len, &error);
    ck_assert_msg(profile != NULL, "%s", error != NULL ? error->message : "");
    return profile;
}

static LhTopology *
with_profile(const char *name, double factor)
{
    g_autoptr(GError) error = NULL;
    LhTopology *t = lh_topology_load(name, NULL);
    g_autoptr(LhDevice) device = lh_device_load(t->device_name, NULL);
    g_autoptr(LhProfile) profile = profile_of(t, factor);

    ck_assert_msg(lh_profile_apply(profile, device, t, &error), "%s: %s", name,
                  error != NULL ? error->message : "");
    return t;
}

/* All links of two nodes, or of one. */
static void
check_links(const LhTopology *a, const LhTopology *b, double factor)
{
    const uint32_t nodes = a->nics_per_node > 0 && a->max_nodes != 1 ? 2 : 1;
    const uint32_t ranks = nodes * (uint32_t)a->gpus_per_node;
    LhNetwork before, after;

    ck_assert(lh_network_init(&before, a, nodes, ranks, NULL, NULL));
    ck_assert(lh_network_init(&after, b, nodes, ranks, NULL, NULL));
    for (uint32_t id = 0; id < before.links_count; id++) {
        const LhLink x = lh_network_link(&before, id), y = lh_network_link(&after, id);
        const bool measured = reached_alone(a, (int)MIN(x.tier, LH_TIER_NIC)) > 0;
        const double wanted = x.bandwidth_bytes_per_s * (measured ? factor : 1);

        ck_assert_msg(fabs(y.bandwidth_bytes_per_s - wanted) <= 1e-9 * wanted,
                      "%s, link %u: %g after %g", a->name, id, y.bandwidth_bytes_per_s, wanted);
    }
}

static double
gather_seconds(const LhTopology *t)
{
    const LhGroup all = { .stride = 1, .count = (uint32_t)t->gpus_per_node, .outer_count = 1 };
    g_autoptr(LhDevice) device = lh_device_load(t->device_name, NULL);
    LhNetwork network;
    LhNcclMeasured *native;
    double seconds;
    int provenance;

    ck_assert(lh_network_init(&network, t, 1, all.count, NULL, NULL));
    native = lh_nccl_measured_new(&network, device, &all);
    seconds = lh_nccl_measured_is_measured(native, LH_COLL_ALL_GATHER)
                  ? lh_nccl_measured_seconds(native, LH_COLL_ALL_GATHER, 1 << 27, &provenance)
                  : 0;
    lh_nccl_measured_free(native);
    return seconds;
}

/* A profile equal to the file's prediction changes no link and no time of collectives. At half
 * of it, links have half the bandwidth and the links' part of collectives doubles. */
START_TEST(profiles_are_beside_what_files_say)
{
    g_auto(GStrv) names = lh_data_list("topologies");
    guint measured = 0;

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) file = lh_topology_load(*name, NULL);
        g_autoptr(LhTopology) same = with_profile(*name, 1), half = with_profile(*name, 0.5);
        g_autoptr(GPtrArray) sound = lh_profile_link_notes(same);
        g_autoptr(GPtrArray) slow = lh_profile_link_notes(half);
        const double seconds = file->gpus_per_node > 1 ? gather_seconds(file) : 0;

        check_links(file, same, 1);
        check_links(file, half, 0.5);
        ck_assert_uint_eq(sound->len, 0);
        ck_assert(slow->len > 0 || file->gpus_per_node == 1);
        if (seconds == 0)
            continue;
        measured++;
        ck_assert_double_eq_tol(gather_seconds(same), seconds, 1e-9 * seconds);
        ck_assert_double_gt(gather_seconds(half), 1.8 * seconds);
        ck_assert_double_le(gather_seconds(half), 2 * seconds);
    }
    ck_assert_uint_ge(measured, 5);
}
END_TEST

/* The note gives the class of links, the factor, and the name of the file. */
START_TEST(profiles_that_differ_are_told)
{
    g_autoptr(LhTopology) half = with_profile("hgx-h100", 0.5);
    g_autoptr(GPtrArray) notes = lh_profile_link_notes(half);

    ck_assert_uint_eq(notes->len, 2);
    ck_assert_str_eq(g_ptr_array_index(notes, 0),
                     "messages over NVLink reached 0.50 times the rate that the file of hgx-h100 "
                     "predicts, according to the profile: its links and the times of its "
                     "collectives are scaled by this");
}
END_TEST

/* If measured sends of two GPUs reach half of the link bandwidth, a profile of messages at that
 * rate changes nothing. */
START_TEST(profiles_measure_what_sends_reach)
{
    static const char file[] =
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"box\", \"description\": \"A box.\", "
        "\"source\": \"test\", \"device\": \"l40s\", \"node\": {\"gpus\": 8, \"scale_up\": "
        "{\"kind\": \"none\"}, \"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"3us\", "
        "\"ctas\": 2, \"provenance\": \"datasheet\", \"source\": \"test\"}, \"measured_on\": "
        "{\"pcie\": {\"bandwidth\": \"24GB/s\", \"latency\": \"3us\"}}, \"collective_times\": "
        "[{\"op\": \"sendrecv\", \"ranks\": 2, \"bytes\": [1000, 120000000], \"us\": [10, 10010], "
        "\"provenance\": \"measured\", \"source\": \"test\"}]}, \"max_nodes\": 1}";
    static const char text[] =
        "{\"schema\": \"longhaul.profile/2\", \"name\": \"p\", \"source\": \"test\", \"pcie\": "
        "{\"bandwidth\": \"12GB/s\", \"latency\": \"3us\", \"ctas\": 2, \"provenance\": "
        "\"measured\", \"source\": \"test\"}}";
    g_autoptr(LhTopology) t = lh_topology_parse("box.json", file, strlen(file), NULL);
    g_autoptr(LhDevice) device = lh_device_load("l40s", NULL);
    g_autoptr(LhProfile) p = lh_profile_parse("p.json", text, strlen(text), NULL);

    ck_assert(t != NULL && p != NULL);
    ck_assert(lh_profile_apply(p, device, t, NULL));
    ck_assert_double_eq_tol(t->pcie.bandwidth, 24e9, 1);
    ck_assert_double_eq_tol(t->found[LH_TIER_PCIE], 1, 1e-9);
}
END_TEST

LH_TEST_MAIN("profile_links", profiles_are_beside_what_files_say, profiles_that_differ_are_told,
             profiles_measure_what_sends_reach)
