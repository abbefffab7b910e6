//! What the runners write, what nobody should, and that what is kept stays small.

use super::*;

fn all(text: &str) -> Vec<Case> {
    read(text).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn refused(text: &str, line: usize, says: &str) {
    let refusal = read(text).expect_err(says);
    assert!(refusal.why.contains(says), "{refusal}");
    assert_eq!(refusal.line, line, "{refusal}");
}

fn counts(cases: &[Case]) -> [usize; 4] {
    TestResult::ALL
        .iter()
        .map(|one| cases.iter().filter(|case| case.result == *one).count())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

#[test]
fn surefire() {
    let cases = all(r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="https://maven.apache.org/surefire/maven-surefire-plugin/xsd/surefire-test-report-3.0.xsd" version="3.0" name="org.example.ShopTest" time="1,204.5" tests="5" errors="1" skipped="1" failures="1">
  <properties><property name="java.version" value="21.0.4"/><property name="sun.java.command" value="a &amp; b"/></properties>
  <testcase name="opens" classname="org.example.ShopTest" time="0.012"/>
  <testcase name="sells" classname="org.example.ShopTest" time="1,204.004">
    <failure message="expected: &lt;2&gt; but was: &lt;1&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
	at org.example.ShopTest.sells(ShopTest.java:17)
]]></failure>
    <system-out><![CDATA[selling]]></system-out>
  </testcase>
  <testcase name="delivers" classname="org.example.ShopTest" time="0.1">
    <error type="java.lang.NullPointerException">java.lang.NullPointerException
	at org.example.Shop.deliver(Shop.java:9)</error>
  </testcase>
  <testcase name="closes" classname="org.example.ShopTest" time="0"><skipped message="at night"/></testcase>
  <testcase name="wavers" classname="org.example.ShopTest" time="0.2"><flakyFailure message="no" type="x">stack</flakyFailure></testcase>
</testsuite>"#);
    assert_eq!(counts(&cases), [1, 1, 1, 2]);
    let sells = &cases[1];
    assert_eq!((sells.suite.as_str(), sells.name.as_str()), ("org.example.ShopTest", "sells"));
    assert_eq!(sells.elapsed_ms, Some(1_204_004));
    assert_eq!(sells.message.as_deref(), Some("expected: <2> but was: <1>"));
    let output = sells.output.as_deref().unwrap();
    assert!(output.contains("ShopTest.java:17") && output.ends_with("selling"), "{output}");
    assert_eq!(cases[2].message.as_deref(), Some("java.lang.NullPointerException"));
    assert_eq!(cases[3].message.as_deref(), Some("at night"));
    assert_eq!((cases[4].result, &cases[4].output), (TestResult::Passed, &None));
}

#[test]
fn pytest() {
    let cases = all(
        r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="0.045" timestamp="2026-11-24T09:12:44.123456+00:00" hostname="ci"><testcase classname="tests.test_shop" name="test_opens[a&amp;b]" time="0.001" /><testcase classname="tests.test_shop" name="test_sells" time="0.002"><failure message="assert 1 == 2">def test_sells():
&gt;       assert 1 == 2
E       assert 1 == 2

tests/test_shop.py:5: AssertionError</failure></testcase><testcase classname="tests.test_shop" name="test_skips" time="0.000"><skipped type="pytest.skip" message="no network">/t/test_shop.py:8: no network</skipped></testcase><testcase classname="tests.test_shop" name="test_fixture" time="0.001"><error message="failed on setup with &quot;boom&quot;">boom</error></testcase></testsuite></testsuites>"#,
    );
    assert_eq!(counts(&cases), [1, 1, 1, 1]);
    assert_eq!(cases[0].name, "test_opens[a&b]");
    assert!(cases[1].output.as_deref().unwrap().contains(">       assert 1 == 2"));
    assert_eq!(cases[3].message.as_deref(), Some("failed on setup with \"boom\""));
}

#[test]
fn jest() {
    let cases = all(r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="jest tests" tests="2" failures="1" errors="0" time="1.2">
  <testsuite name="cart" errors="0" failures="1" skipped="0" timestamp="2026-11-24T09:12:44" time="0.9" tests="2">
    <testcase classname="cart adds an item" name="cart adds an item" time="0.004">
    </testcase>
    <testcase classname="cart removes an item" name="cart removes an item" time="0.003">
      <failure>Error: &#27;[2mexpect(&#27;[22m&#27;[31mreceived&#27;[39m)
    at Object.toBe (cart.test.js:12:15)</failure>
    </testcase>
  </testsuite>
</testsuites>"#);
    assert_eq!(counts(&cases), [1, 0, 0, 1]);
    assert_eq!(cases[1].message.as_deref(), Some("Error: expect(received)"), "colours are for terminals");
}

#[test]
fn cargo_nextest() {
    let cases = all(r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="8b2a4f0e-0000-0000-0000-000000000000" timestamp="2026-11-24T09:12:44.123+00:00" time="0.512">
    <testsuite name="shop" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="tests::opens" classname="shop" timestamp="2026-11-24T09:12:44.125+00:00" time="0.004"></testcase>
        <testcase name="tests::sells" classname="shop" time="0.012">
            <failure message="thread &apos;tests::sells&apos; panicked at src/lib.rs:7:9" type="test failure with exit code 101">assertion `left == right` failed
  left: 1
 right: 2</failure>
            <rerunFailure timestamp="x" time="0.01" type="test failure"><system-out>again</system-out></rerunFailure>
            <system-out>running 1 test</system-out>
            <system-err>thread panicked</system-err>
        </testcase>
        <testcase name="tests::flaky" classname="shop" time="0.1"><flakyFailure type="test failure"><system-err>no</system-err></flakyFailure></testcase>
    </testsuite>
</testsuites>"#);
    assert_eq!(counts(&cases), [1, 0, 0, 2]);
    assert_eq!(cases[1].message.as_deref(), Some("thread 'tests::sells' panicked at src/lib.rs:7:9"));
    let output = cases[1].output.as_deref().unwrap();
    assert!(output.contains("right: 2") && output.contains("thread panicked") && !output.contains("again"), "{output}");
}

#[test]
fn gotestsum_and_suites_within_suites() {
    let cases = all(r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="0" time="0.310000">
	<testsuite tests="2" failures="1" time="0.004000" name="example.org/shop/cart" timestamp="2026-11-24T09:12:44Z">
		<properties><property name="go.version" value="go1.23 linux/amd64"></property></properties>
		<testcase classname="example.org/shop/cart" name="TestAdd/one" time="0.000000"></testcase>
		<testcase classname="example.org/shop/cart" name="TestAdd" time="0.010000">
			<failure message="Failed" type="">=== RUN   TestAdd&#xA;    cart_test.go:9: got 1&#xA;--- FAIL: TestAdd (0.01s)&#xA;</failure>
		</testcase>
	</testsuite>
	<testsuite name="outer"><testsuite name="inner"><testcase name="a"/></testsuite><testsuite><testcase name="b"/></testsuite></testsuite>
	<testcase name="of no suite" classname="test" file="door.test.mjs"/>
</testsuites>"#);
    assert_eq!(counts(&cases), [1, 0, 0, 4]);
    assert!(cases[1].output.as_deref().unwrap().contains("\n    cart_test.go:9: got 1\n"));
    let suites: Vec<&str> = cases.iter().map(|case| case.suite.as_str()).collect();
    assert_eq!(suites[2..], ["inner", "outer", ""]);
    assert_eq!(cases[2].elapsed_ms, None);
}

#[test]
fn what_is_no_report_is_refused_with_its_place() {
    refused("", 1, "no testsuites");
    refused("hello", 1, "outside of the report");
    refused("{\"tests\": []}", 1, "outside of the report");
    refused("<html>\n<body/></html>", 1, "begins with testsuites or testsuite");
    refused("<testsuite>\n  <testcase name='x'>\n", 3, "ends before");
    refused("<testsuite>\n</testsuites>", 2, "expected");
    refused("<testsuite/>\n<testsuite/>", 2, "second element");
    refused("<testsuite>\n\n  <testcase time='1'/></testsuite>", 3, "no name");
    refused("<testsuite><testcase name='a' time='soon'/></testsuite>", 1, "no number of seconds");
    refused("<testsuite><testcase name='a' time='NaN'/></testsuite>", 1, "no number of seconds");
    refused("<testsuite><testcase name='a' name='b'/></testsuite>", 1, "duplicate");
    refused("<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>", 1, "can't stand here");
    refused("<?xml version='1.0' encoding='UTF-16'?><testsuite/>", 1, "UTF-8");
    let at = read("<testsuite>\n  ü <testcase/></testsuite>").unwrap_err();
    assert_eq!((at.line, at.column), (2, 5), "{at}");
}

#[test]
fn nothing_is_expanded() {
    let laughs = r#"<?xml version="1.0"?>
<!DOCTYPE testsuite [
  <!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
]>
<testsuite><testcase name="x"><failure>&c;</failure></testcase></testsuite>"#;
    let refusal = read(laughs).unwrap_err();
    assert!(refusal.why.contains("document type"), "{refusal}");
    refused("<!DOCTYPE t SYSTEM \"file:///etc/passwd\">\n<testsuite/>", 1, "document type");
    refused("<testsuite><testcase name='x'><failure>&c;</failure></testcase></testsuite>", 1, "&c;");
    refused("<testsuite><testcase name='&c;'/></testsuite>", 1, "c");
    refused("<testsuite><testcase name='x'><failure>&#x110000;</failure></testcase></testsuite>", 1, "");
}

#[test]
fn depth_cases_attributes_and_what_is_kept_are_bounded() {
    let deep = format!("{}{}", "<testsuite>".repeat(40), "</testsuite>".repeat(40));
    refused(&deep, 1, "deep in each other");
    let (open, case) = ("<testsuite>", "<testcase name='x'/>");
    assert_eq!(all(&format!("{open}{}</testsuite>", case.repeat(MAX_CASES))).len(), MAX_CASES);
    refused(&format!("{open}{}</testsuite>", case.repeat(MAX_CASES + 1)), 1, "20000 cases at most");
    let wide = (0..=MAX_ATTRIBUTES).map(|n| format!(" a{n}='x'")).collect::<Vec<_>>().concat();
    refused(&format!("<testsuite{wide}/>"), 1, "attributes");

    let long = "ü".repeat(100_000);
    let case = format!(
        "<testcase name='{long}' classname='{long}'><failure message='{long}'>{long}</failure><system-out>{long}end</system-out></testcase>"
    );
    let cases = all(&format!("<testsuite name='{long}'>{}</testsuite>", case.repeat(9)));
    let longest = cases.iter().map(Case::bytes).max().unwrap();
    assert!(longest < 2 * (3 * MAX_NAME + MAX_MESSAGE) + MAX_DETAIL + MAX_WRITTEN + 100, "{longest}");
    assert!(cases[0].output.as_deref().unwrap().ends_with("end"));

    let case = format!("<testcase name='x'><failure>{}</failure></testcase>", "y".repeat(MAX_DETAIL));
    let cases = all(&format!("<testsuite>{}</testsuite>", case.repeat(500)));
    let kept: usize = cases.iter().map(Case::bytes).sum();
    assert!(kept < MAX_OUTPUTS + MAX_DETAIL + 500 * (MAX_MESSAGE + 10), "{kept}");
    assert!(cases[499].output.is_none() && cases[499].message.is_some());
}

#[test]
fn what_acts_on_a_terminal_or_turns_a_line_is_not_kept() {
    let cases = all("<testsuite><testcase name='a&#x202e;b&#10;c' classname=' '><failure>\u{1b}]0;title\u{7}x&#0;</failure></testcase></testsuite>"
        .replace("&#0;", "&#8;").as_str());
    assert_eq!(cases[0].name, "a\u{fffd}b c");
    assert_eq!(cases[0].class, None);
    assert!(!cases[0].output.as_deref().unwrap().contains(corpus_domain::is_harmful), "{:?}", cases[0].output);
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_much(text in ".{0,400}", cut in 0_usize..200) {
        let _ = read(&text);
        let good = "<testsuites><testsuite name=\"a\"><testcase name=\"b\" time=\"1\"><failure message=\"c\">d &amp; <![CDATA[e]]></failure></testcase></testsuite></testsuites>";
        let cut = good.floor_char_boundary(cut.min(good.len()));
        let _ = read(&format!("{}{text}{}", &good[..cut], &good[cut..]));
    }
}
